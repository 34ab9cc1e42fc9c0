//! Scopes by their dotted paths, nested as they ran.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::record::{AllocationRow, PhaseRow, SpanKind};

/// One scope of a [`ScopeTree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub path: Arc<str>,
    /// The place of the enclosing scope in the tree, which is before this one's.
    pub parent: Option<usize>,
    pub depth: usize,
}

/// Scopes in the order of a table: each is followed by what is nested in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeTree {
    pub nodes: Vec<Node>,
}

/// What is known of scopes before they are a tree.
#[derive(Debug, Clone, Default)]
pub struct Scopes {
    paths: BTreeSet<Arc<str>>,
    /// Of the scopes that were timed, the one around them; a path alone does not tell, as a scope's own name
    /// may hold dots (`h.0`).
    parents: HashMap<Arc<str>, Option<Arc<str>>>,
    /// Scopes that come first have small numbers.
    order: HashMap<Arc<str>, Order>,
}

/// Whether it was met while the step ran (else it comes after those that were), and the number of its first
/// allocation.
type Order = (bool, i64);

impl Scopes {
    pub fn add(&mut self, path: &Arc<str>) {
        self.paths.insert(path.clone());
    }

    /// Learns which scopes there are and how they nest.
    pub fn learn_spans<'a>(&mut self, rows: impl IntoIterator<Item = &'a PhaseRow>) {
        for row in rows.into_iter().filter(|row| matches!(row.kind, SpanKind::Scope | SpanKind::Node)) {
            self.add(&row.name);
            row.parent.iter().for_each(|parent| self.add(parent));
            self.parents.entry(row.name.clone()).or_insert_with(|| row.parent.clone());
        }
    }

    /// Learns which scope ran first from what the step allocated in them: a span's row does not say when it
    /// began. In order of birth.
    pub fn learn_order<'a>(&mut self, lifetimes: impl IntoIterator<Item = &'a AllocationRow>, step: i64) {
        for row in lifetimes {
            if let Some(scope) = &row.scope {
                self.rank(scope, row.step == Some(step), row.id);
            }
        }
    }

    /// Puts a scope at the place of allocation `id`, unless it has an earlier one.
    pub fn rank(&mut self, path: &Arc<str>, in_step: bool, id: i64) {
        let order = (!in_step, id);
        self.order.entry(path.clone()).and_modify(|known| *known = order.min(*known)).or_insert(order);
    }

    pub fn into_tree(self) -> ScopeTree {
        let mut children: BTreeMap<Option<Arc<str>>, Vec<Arc<str>>> = BTreeMap::new();
        for path in &self.paths {
            children.entry(self.parent_of(path)).or_default().push(path.clone());
        }
        let mut first = HashMap::new();
        self.paths.iter().for_each(|path| self.rank_with_ancestors(path, &mut first));
        for siblings in children.values_mut() {
            siblings.sort_by(|a, b| compare(&first, a, b));
        }
        let mut tree = ScopeTree::default();
        tree.add_children(None, 0, None, &children);
        tree
    }

    /// The enclosing scope as it was timed; for one that was not, the longest path that it begins with.
    fn parent_of(&self, path: &str) -> Option<Arc<str>> {
        if let Some(parent) = self.parents.get(path) {
            // A path begins with its parent's; a table that says otherwise must not tie the tree into a loop.
            return parent.clone().filter(|parent| last_part(path, Some(parent)) != path);
        }
        let prefixes = path.rmatch_indices('.').map(|(dot, _)| &path[..dot]);
        prefixes.filter_map(|prefix| self.paths.get(prefix)).next().cloned()
    }

    /// A scope comes where the first of it or of anything nested in it does.
    fn rank_with_ancestors(&self, path: &Arc<str>, first: &mut HashMap<Arc<str>, Order>) {
        let Some(&order) = self.order.get(path) else { return };
        let mut scope = Some(path.clone());
        while let Some(path) = scope {
            first.entry(path.clone()).and_modify(|known| *known = order.min(*known)).or_insert(order);
            scope = self.parent_of(&path);
        }
    }
}

impl ScopeTree {
    fn add_children(
        &mut self,
        of: Option<Arc<str>>,
        depth: usize,
        parent: Option<usize>,
        children: &BTreeMap<Option<Arc<str>>, Vec<Arc<str>>>,
    ) {
        for path in children.get(&of).into_iter().flatten() {
            self.nodes.push(Node { path: path.clone(), parent, depth });
            let place = self.nodes.len() - 1;
            self.add_children(Some(path.clone()), depth + 1, Some(place), children);
        }
    }

    /// The places by path.
    pub fn places(&self) -> HashMap<Arc<str>, usize> {
        self.nodes.iter().enumerate().map(|(place, node)| (node.path.clone(), place)).collect()
    }

    /// Adds to each value those of the scopes nested in it.
    pub fn with_nested(&self, own: &[i64]) -> Vec<i64> {
        let mut sums = own.to_vec();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                sums[parent] += sums[place];
            }
        }
        sums
    }
}

/// By their first allocations; scopes without any come last, by name.
fn compare(first: &HashMap<Arc<str>, Order>, a: &Arc<str>, b: &Arc<str>) -> Ordering {
    let order = |path| first.get(path).copied().unwrap_or((true, i64::MAX));
    order(a).cmp(&order(b)).then_with(|| by_name(a, b))
}

/// `h.2` before `h.10`.
fn by_name(a: &str, b: &str) -> Ordering {
    let part = |part: &str| (part.parse::<u64>().unwrap_or(u64::MAX), part.to_owned());
    a.split('.').map(part).cmp(b.split('.').map(part))
}

/// A scope's name inside the one around it: `h.0.mlp` in `h.0` is `mlp`.
pub fn last_part<'a>(path: &'a str, parent: Option<&str>) -> &'a str {
    parent.and_then(|parent| path.strip_prefix(parent)?.strip_prefix('.')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Phase;

    fn span(name: &str, parent: Option<&str>) -> PhaseRow {
        PhaseRow {
            step: 0,
            kind: SpanKind::Scope,
            phase: Phase::Forward,
            name: name.into(),
            parent: parent.map(Arc::from),
            calls: 1,
            total_ns: 1,
            begin_ns: None,
            device_ns: None,
            lead_ns: None,
        }
    }

    fn shown(scopes: Scopes) -> Vec<String> {
        let tree = scopes.into_tree();
        tree.nodes.iter().map(|node| format!("{}{}", "  ".repeat(node.depth), node.path)).collect()
    }

    #[test]
    fn scopes_nest_as_they_were_timed_and_untimed_ones_by_their_path() {
        let mut scopes = Scopes::default();
        scopes.learn_spans(&[span("h.0", None), span("h.0.attn", Some("h.0")), span("h", None)]);
        ["h.0.attn.c_proj", "other.layer"].iter().for_each(|&path| scopes.add(&path.into()));
        assert_eq!(shown(scopes), ["h", "h.0", "  h.0.attn", "    h.0.attn.c_proj", "other.layer"]);
    }

    #[test]
    fn scopes_come_in_the_order_they_ran_in_then_those_that_did_not_then_by_name() {
        let mut scopes = Scopes::default();
        let spans = ["h.10", "h.2", "embed", "late"].map(|name| span(name, None));
        scopes.learn_spans(&spans);
        scopes.add(&"module".into());
        scopes.rank(&"late".into(), true, 90);
        scopes.rank(&"embed".into(), true, 50);
        scopes.rank(&"module".into(), false, 3);
        assert_eq!(shown(scopes), ["embed", "late", "module", "h.2", "h.10"]);
    }

    #[test]
    fn a_scope_comes_where_its_first_nested_one_does() {
        let mut scopes = Scopes::default();
        scopes.learn_spans(&[span("a", None), span("b", None), span("b.inner", Some("b"))]);
        scopes.rank(&"b.inner".into(), true, 1);
        scopes.rank(&"a".into(), true, 2);
        assert_eq!(shown(scopes), ["b", "  b.inner", "a"]);
    }

    #[test]
    fn nested_values_are_added_once() {
        let mut scopes = Scopes::default();
        scopes.learn_spans(&[span("a", None), span("a.b", Some("a")), span("a.b.c", Some("a.b"))]);
        assert_eq!(scopes.into_tree().with_nested(&[1, 10, 100]), [111, 110, 100]);
    }
}
