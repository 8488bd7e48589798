//! The three ways to declare settings: a table, a choice of tables, a choice of words.

/// `optional!()` is no default; `optional!(value)` is one.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// A table: `pub field: Type [range] = default`, with an optional range and default. Its doc
/// comments become the descriptions of the JSON Schema.
macro_rules! table {
    (
        $(#[doc = $about:literal])+ $(#[derive($($derive:ident),+)])?
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])?
            pub $field:ident: $type:ty $([$range:expr])? $(= $default:expr)?,)*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize $($(, $derive)+)?)]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($($serde)+)])? pub $field: $type,)*
        }

        impl $crate::read::Fields for $name {
            const KEYS: &'static [&'static str] = &[$($crate::read::key(stringify!($field))),*];

            fn fields(table: &mut $crate::read::Table<'_>) -> Option<Self> {
                $(
                    let default = $crate::read::optional!($($default)?);
                    let $field = table.read::<$type>($crate::read::key(stringify!($field)), default);
                    $(let $field = table.within($crate::read::key(stringify!($field)), $field, &$range);)?
                )*
                Some(Self { $($field: $field?,)* })
            }

            fn describe(definitions: &mut $crate::read::Definitions) -> serde_json::Value {
                let mut properties = serde_json::Map::new();
                let mut required = Vec::<&str>::new();
                $(
                    let default: Option<$type> = $crate::read::optional!($($default)?);
                    if default.is_none() {
                        required.push($crate::read::key(stringify!($field)));
                    }
                    let schema = <$type as $crate::read::Read>::schema(definitions);
                    $(let schema = $crate::read::bounds::<$type>(schema, &$range);)?
                    let doc = concat!($($doc, "\n"),+);
                    properties.insert(
                        $crate::read::key(stringify!($field)).into(),
                        $crate::read::describe_field(schema, doc, default.as_ref()),
                    );
                )*
                serde_json::json!({
                    "type": "object",
                    "description": $crate::read::one_line(concat!($($about, "\n"),+)),
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                })
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &serde_json::Value,
                at: &$crate::read::Place<'_>,
                mistakes: &mut Vec<$crate::Mistake>,
            ) -> Option<Self> {
                use $crate::read::Fields;
                let mut table = $crate::read::Table::open(value, at, &[Self::KEYS], mistakes)?;
                Self::fields(&mut table)
            }

            fn schema(definitions: &mut $crate::read::Definitions) -> serde_json::Value {
                $crate::read::define(
                    stringify!($name),
                    definitions,
                    <Self as $crate::read::Fields>::describe,
                )
            }
        }
    };
}

/// A choice between tables by their key `kind`. A function given as `short` expands a short form
/// into its table.
macro_rules! choice {
    (
        $(#[doc = $about:literal])+ #[what($what:literal)] $(#[short($short:path)])?
        pub enum $name:ident {
            $($(#[doc = $doc:literal])+ $word:literal => $variant:ident,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "kind")]
        pub enum $name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant($variant),)+
        }

        impl $name {
            /// The words of all kinds.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word of this kind.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)+
                }
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &serde_json::Value,
                at: &$crate::read::Place<'_>,
                mistakes: &mut Vec<$crate::Mistake>,
            ) -> Option<Self> {
                let short: Option<fn(&serde_json::Value) -> Option<serde_json::Value>> =
                    $crate::read::optional!($($short)?);
                let long = short.and_then(|short| short(value)).or_else(|| {
                    value.as_str().map(|kind| serde_json::json!({ "kind": kind }))
                });
                let is_short = long.is_some();
                let value = long.as_ref().unwrap_or(value);
                let kinds = &[$($word),+];
                let kind = $crate::read::kind(value, is_short, at, $what, kinds, mistakes)?;
                match kind {
                    $($word => $crate::read::read_kind(value, is_short, at, mistakes)
                        .map(Self::$variant),)+
                    _ => None,
                }
            }

            fn schema(definitions: &mut $crate::read::Definitions) -> serde_json::Value {
                $crate::read::define(stringify!($name), definitions, |definitions| {
                    let short: &[&str] = &[$(stringify!($short))?];
                    $crate::read::describe_choice(
                        concat!($($about, "\n"),+),
                        !short.is_empty(),
                        &[$((
                            $word,
                            <$variant as $crate::read::Fields>::describe(definitions),
                        )),+],
                    )
                })
            }
        }
    };
}

/// A choice between words.
macro_rules! words {
    (
        $(#[doc = $about:literal])+ #[what($what:literal)]
        pub enum $name:ident {
            $($(#[doc = $doc:literal])+ $word:literal => $variant:ident,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        pub enum $name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of this value.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The meaning of this value.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &serde_json::Value,
                at: &$crate::read::Place<'_>,
                mistakes: &mut Vec<$crate::Mistake>,
            ) -> Option<Self> {
                match $crate::read::word(value, at, $what, &[$($word),+], mistakes)? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn schema(definitions: &mut $crate::read::Definitions) -> serde_json::Value {
                $crate::read::define(stringify!($name), definitions, |_| serde_json::json!({
                    "description": $crate::read::one_line(concat!($($about, "\n"),+)),
                    "oneOf": [$({
                        "const": $word,
                        "description": $crate::read::one_line(concat!($($doc, "\n"),+)),
                    }),+],
                }))
            }
        }
    };
}

pub(crate) use {choice, optional, table, words};
