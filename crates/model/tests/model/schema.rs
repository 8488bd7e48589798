//! The JSON Schema describes exactly what the reader accepts.

use crate::common::{SIM, SMALL};
use serde_json::{Map, Value};
use tcplab_model::{from_json, from_toml, schema};

/// Follows a reference.
fn target<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => root.pointer(name.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// All tables below `schema`, each with the path of an example.
fn tables<'a>(root: &'a Value, schema: &'a Value, found: &mut Vec<&'a Map<String, Value>>) {
    let schema = target(root, schema);
    if let Some(properties) = schema["properties"].as_object() {
        found.push(properties);
        properties.values().for_each(|property| tables(root, property, found));
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            tables(root, &schema[part], found);
        }
    }
    for form in schema["anyOf"].as_array().into_iter().flatten() {
        tables(root, form, found);
    }
}

#[test]
fn every_key_has_a_description() {
    let schema = schema();
    let mut found = Vec::new();
    tables(&schema, &schema, &mut found);
    assert!(found.len() > 30, "{}", found.len());
    for (key, property) in found.into_iter().flatten() {
        let is_constant = property["const"].is_string() || key == "name" || key == "trace";
        assert!(is_constant || property["description"].is_string(), "{key}: {property}");
    }
}

/// The keys that the message about an unknown key lists.
fn accepted(tree: &Value, at: &str) -> Vec<String> {
    let document = from_json(&tree.to_string()).unwrap();
    let mistakes = document.plans(&SIM).unwrap_err();
    let keys = mistakes.0.into_iter().find_map(|mistake| match mistake.problem {
        tcplab_model::Problem::UnknownKey { known, .. } if mistake.at == at => Some(known),
        _ => None,
    });
    let mut keys = keys.unwrap_or_else(|| panic!("no unknown key at {at}"));
    keys.sort_unstable();
    keys
}

#[test]
fn the_keys_of_each_table_are_those_that_are_accepted() {
    let schema = schema();
    let base: Value = serde_json::from_str(&from_toml(SMALL).unwrap().to_json()).unwrap();
    // Paths of tables, with their names in the schema's definitions.
    let places = [
        ("", "Experiment"),
        ("/network", "Network"),
        ("/network/dumbbell", "Dumbbell"),
        ("/network/dumbbell/access", "LinkSettings"),
        ("/network/parking_lot", "ParkingLot"),
        ("/network/chain", "Chain"),
        ("/network/antiparallel", "Antiparallel"),
        ("/network/links/0", "Link"),
        ("/network/routes/0", "Route"),
        ("/network/lan/x", "Lan"),
        ("/network/dumbbell/reordering", "Reordering"),
        ("/hosts/x", "Host"),
        ("/hosts/x/cpu", "Cpu"),
        ("/stack", "Stack"),
        ("/flows/0", "Flow"),
        ("/record", "Record"),
    ];
    for (path, name) in places {
        let mut tree = base.clone();
        let (mut target, mut at) = (&mut tree, String::new());
        for step in path.split('/').skip(1) {
            if step == "0" {
                if !target.is_array() {
                    *target = serde_json::json!([{}]);
                }
                target = &mut target[0];
                at += "[0]";
            } else {
                target = &mut target[step];
                at = if at.is_empty() { step.into() } else { at + "." + step };
            }
        }
        target["no-such-key"] = true.into();
        at = if at.is_empty() { "no-such-key".into() } else { at + ".no-such-key" };
        let definition = if name == "Experiment" { &schema } else { &schema["$defs"][name] };
        let mut described: Vec<_> =
            definition["properties"].as_object().unwrap().keys().cloned().collect();
        described.sort_unstable();
        assert_eq!(accepted(&tree, &at), described, "{name}");
        assert_eq!(definition["additionalProperties"], false, "{name}");
    }
}

#[test]
fn kinds_in_the_schema_are_those_that_are_accepted() {
    let schema = schema();
    for (name, key) in
        [("Traffic", "flows.0.traffic"), ("Queue", "queue"), ("Loss", "loss"), ("Sizes", "sizes")]
    {
        let forms = schema["$defs"][name]["anyOf"].as_array().unwrap();
        let kinds: Vec<_> =
            forms.iter().filter_map(|form| form["properties"]["kind"]["const"].as_str()).collect();
        assert!(!kinds.is_empty(), "{key}");
        for kind in kinds {
            let line = match name {
                "Traffic" => format!("{SMALL}traffic = {{ kind = \"{kind}\" }}\n"),
                "Sizes" => format!(
                    "{SMALL}traffic = {{ kind = \"arrivals\", per_second = 1, sizes = {{ kind = \
                     \"{kind}\" }} }}\n"
                ),
                _ => SMALL.replace("delay", &format!("{key} = {{ kind = \"{kind}\" }}\ndelay")),
            };
            let messages = match from_toml(&line).unwrap().plans(&SIM) {
                Ok(_) => String::new(),
                Err(mistakes) => mistakes.to_string(),
            };
            assert!(!messages.contains("is called"), "{kind}: {messages}");
        }
    }
}

#[test]
fn the_schema_shows_defaults() {
    let schema = schema();
    assert_eq!(schema["properties"]["seed"]["default"], 1);
    assert_eq!(schema["$defs"]["Record"]["properties"]["samples"]["default"], "100 ms");
    assert_eq!(schema["$defs"]["Flow"]["required"], serde_json::json!(["from", "to"]));
    assert_eq!(schema["required"], serde_json::json!(["duration"]));
}
