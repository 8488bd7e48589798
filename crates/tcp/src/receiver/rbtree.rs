//! A red-black tree with the same shape as the kernel's (`lib/rbtree.c`), because the nodes that a
//! search visits depend on the order of insertion. Algorithms of Cormen, Leiserson, Rivest and
//! Stein, chapter 13.

/// The side on which a node is attached to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

#[derive(Clone, Debug)]
struct Node<T> {
    value: T,
    parent: Option<usize>,
    left: Option<usize>,
    right: Option<usize>,
    is_red: bool,
}

/// Nodes are named by numbers, which stay valid until the node is removed.
#[derive(Clone, Debug)]
pub(super) struct Tree<T> {
    nodes: Vec<Option<Node<T>>>,
    free: Vec<usize>,
    root: Option<usize>,
    last: Option<usize>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: None, last: None }
    }
}

impl<T> Tree<T> {
    pub fn root(&self) -> Option<usize> {
        self.root
    }

    /// The rightmost node.
    pub fn last(&self) -> Option<usize> {
        self.last
    }

    pub fn child(&self, node: usize, side: Side) -> Option<usize> {
        let node = self.node(node)?;
        match side {
            Side::Left => node.left,
            Side::Right => node.right,
        }
    }

    pub fn get(&self, node: usize) -> Option<&T> {
        self.node(node).map(|node| &node.value)
    }

    pub fn get_mut(&mut self, node: usize) -> Option<&mut T> {
        self.nodes.get_mut(node)?.as_mut().map(|node| &mut node.value)
    }

    fn node(&self, node: usize) -> Option<&Node<T>> {
        self.nodes.get(node)?.as_ref()
    }

    fn is_red(&self, node: Option<usize>) -> bool {
        node.and_then(|node| self.node(node)).is_some_and(|node| node.is_red)
    }

    fn paint(&mut self, node: Option<usize>, is_red: bool) {
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)?.as_mut()) {
            node.is_red = is_red;
        }
    }

    fn parent(&self, node: usize) -> Option<usize> {
        self.node(node)?.parent
    }

    /// Attaches a node, or none, at a place.
    fn hang(&mut self, place: Option<(usize, Side)>, child: Option<usize>) {
        let parent = place.map(|(parent, _)| parent);
        if let Some(child) = child.and_then(|child| self.nodes.get_mut(child)?.as_mut()) {
            child.parent = parent;
        }
        match place {
            None => self.root = child,
            Some((parent, side)) => {
                if let Some(parent) = self.nodes.get_mut(parent).and_then(Option::as_mut) {
                    match side {
                        Side::Left => parent.left = child,
                        Side::Right => parent.right = child,
                    }
                }
            }
        }
    }

    fn place(&self, node: usize) -> Option<(usize, Side)> {
        let parent = self.parent(node)?;
        let is_orphaned = self.child(parent, Side::Left) == Some(node);
        Some((parent, if is_orphaned { Side::Left } else { Side::Right }))
    }

    /// Rotates a node down to this side; its child on the other side takes its place.
    fn rotate(&mut self, node: usize, side: Side) {
        let other = opposite(side);
        let Some(child) = self.child(node, other) else { return };
        let (place, inner) = (self.place(node), self.child(child, side));
        self.hang(place, Some(child));
        self.hang(Some((child, side)), Some(node));
        self.hang(Some((node, other)), inner);
    }

    /// Inserts a leaf at a free place; without a place, the root.
    pub fn insert(&mut self, place: Option<(usize, Side)>, value: T) {
        let parent = place.map(|(parent, _)| parent);
        let leaf = Node { value, parent, left: None, right: None, is_red: true };
        let number = if let Some(number) = self.free.pop() {
            self.nodes[number] = Some(leaf);
            number
        } else {
            self.nodes.push(Some(leaf));
            self.nodes.len() - 1
        };
        if place.is_none_or(|place| place == (self.last.unwrap_or(number), Side::Right)) {
            self.last = Some(number);
        }
        self.hang(place, Some(number));
        self.balance_leaf(number);
    }

    /// `RB-INSERT-FIXUP`.
    fn balance_leaf(&mut self, leaf: usize) {
        let mut node = leaf;
        while let Some((parent, side)) = self.place(node).filter(|_| self.is_red(self.parent(node)))
        {
            let Some((grandparent, parent_side)) = self.place(parent) else { break };
            let uncle = self.child(grandparent, opposite(parent_side));
            if self.is_red(uncle) {
                self.paint(Some(parent), false);
                self.paint(uncle, false);
                self.paint(Some(grandparent), true);
                node = grandparent;
                continue;
            }
            let mut upper = parent;
            if side != parent_side {
                self.rotate(parent, parent_side);
                upper = node;
            }
            self.paint(Some(upper), false);
            self.paint(Some(grandparent), true);
            self.rotate(grandparent, opposite(parent_side));
            break;
        }
        self.paint(self.root, false);
    }

    /// The leftmost node.
    pub fn first(&self) -> Option<usize> {
        let mut node = self.root?;
        while let Some(left) = self.child(node, Side::Left) {
            node = left;
        }
        Some(node)
    }

    /// Removes the leftmost node.
    pub fn pop_first(&mut self) -> Option<T> {
        let first = self.first()?;
        let (place, right) = (self.place(first), self.child(first, Side::Right));
        self.hang(place, right);
        let node = self.nodes[first].take()?;
        self.free.push(first);
        if self.last == Some(first) {
            self.last = place.map(|(parent, _)| parent);
        }
        if right.is_some() {
            // The right child is red, or the black heights would differ.
            self.paint(right, false);
        } else if !node.is_red {
            self.balance_left(place.map(|(parent, _)| parent));
        }
        Some(node.value)
    }

    /// `RB-DELETE-FIXUP`, where the left subtree of `parent` lacks a black node. All nodes visited
    /// are on the left edge.
    fn balance_left(&mut self, parent: Option<usize>) {
        let mut lacking = parent;
        while let Some(parent) = lacking {
            let Some(mut sibling) = self.child(parent, Side::Right) else { return };
            if self.is_red(Some(sibling)) {
                self.paint(Some(sibling), false);
                self.paint(Some(parent), true);
                self.rotate(parent, Side::Left);
                let Some(next) = self.child(parent, Side::Right) else { return };
                sibling = next;
            }
            let near = self.child(sibling, Side::Left);
            if !self.is_red(near) && !self.is_red(self.child(sibling, Side::Right)) {
                self.paint(Some(sibling), true);
                if self.is_red(Some(parent)) {
                    return self.paint(Some(parent), false);
                }
                lacking = self.parent(parent);
                continue;
            }
            if !self.is_red(self.child(sibling, Side::Right)) {
                self.paint(near, false);
                self.paint(Some(sibling), true);
                self.rotate(sibling, Side::Right);
                let Some(next) = self.child(parent, Side::Right) else { return };
                sibling = next;
            }
            self.paint(Some(sibling), self.is_red(Some(parent)));
            self.paint(Some(parent), false);
            self.paint(self.child(sibling, Side::Right), false);
            return self.rotate(parent, Side::Left);
        }
    }
}

fn opposite(side: Side) -> Side {
    match side {
        Side::Left => Side::Right,
        Side::Right => Side::Left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(tree: &mut Tree<u32>, value: u32) {
        let (mut place, mut at) = (None, tree.root());
        while let Some(node) = at {
            let side = if value < tree.nodes[node].as_ref().unwrap().value {
                Side::Left
            } else {
                Side::Right
            };
            (place, at) = (Some((node, side)), tree.child(node, side));
        }
        tree.insert(place, value);
    }

    fn tree(values: impl IntoIterator<Item = u32>) -> Tree<u32> {
        let mut tree = Tree::default();
        for value in values {
            add(&mut tree, value);
        }
        tree
    }

    /// Each node as its value, red ones in brackets, between what hangs below it.
    fn shape(tree: &Tree<u32>, at: Option<usize>) -> String {
        let Some(node) = at else { return String::new() };
        let [left, right] =
            [Side::Left, Side::Right].map(|side| shape(tree, tree.child(node, side)));
        let value = tree.get(node).unwrap();
        let value = if tree.is_red(at) { format!("[{value}]") } else { value.to_string() };
        match (left.as_str(), right.as_str()) {
            ("", "") => value,
            _ => format!("({left} {value} {right})"),
        }
    }

    /// Black nodes on each way down; no red one has a red child.
    fn height(tree: &Tree<u32>, at: Option<usize>) -> u32 {
        let Some(node) = at else { return 1 };
        let children = [Side::Left, Side::Right].map(|side| tree.child(node, side));
        assert!(!tree.is_red(at) || children.iter().all(|&child| !tree.is_red(child)));
        let heights = children.map(|child| height(tree, child));
        assert_eq!(heights[0], heights[1]);
        heights[0] + u32::from(!tree.is_red(at))
    }

    #[test]
    fn rbtree_insertions_match_cormen_exercise_13_3_2() {
        // Cormen et al., exercise 13.3-2: 41, 38, 31, 12, 19, 8.
        let tree = tree([41, 38, 31, 12, 19, 8]);
        assert_eq!(shape(&tree, tree.root()), "((([8] 12 ) [19] 31) 38 41)");
    }

    #[test]
    fn rbtree_pop_first_matches_cormen_exercise_13_4_3() {
        // Cormen et al., exercise 13.4-3: 8, 12, 19, 31, 38 and 41 in this order.
        let mut tree = tree([41, 38, 31, 12, 19, 8]);
        let shapes =
            ["((12 [19] 31) 38 41)", "(( 19 [31]) 38 41)", "(31 38 41)", "( 38 [41])", "41", ""];
        for (value, after) in [8, 12, 19, 31, 38, 41].into_iter().zip(shapes) {
            assert_eq!(tree.pop_first(), Some(value));
            assert_eq!(shape(&tree, tree.root()), after);
        }
        assert_eq!((tree.pop_first(), tree.last()), (None, None));
    }

    #[test]
    fn stays_sorted_and_balanced() {
        for step in [1, 7, 31, 64, 99] {
            let mut sorted: Vec<u32> = (0..100).map(|n| n * step % 101).collect();
            let mut tree = tree(sorted.iter().copied());
            sorted.sort_unstable();
            let greatest = sorted.last();
            for &value in &sorted {
                height(&tree, tree.root());
                assert_eq!(tree.last().and_then(|last| tree.get(last)), greatest);
                assert_eq!(tree.pop_first(), Some(value));
                if value % 3 == 0 {
                    // The node takes the number of the one before it.
                    add(&mut tree, value);
                    assert_eq!(tree.pop_first(), Some(value));
                }
            }
            assert_eq!(tree.root(), None);
        }
    }
}
