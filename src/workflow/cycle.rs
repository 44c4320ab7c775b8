//! Cycles in small graphs, found without recursion: steps that wait for each other, schemas that lead back to
//! themselves.

/// Returns one cycle of the graph in the order of its edges, beginning at its smallest node; none when there is none.
pub fn find(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        OnPath,
        Done,
    }
    let mut seen = vec![Seen::Not; edges.len()];
    for start in 0..edges.len() {
        if seen[start] != Seen::Not {
            continue;
        }
        seen[start] = Seen::OnPath;
        // The path from `start`: each node with how many of its edges were followed.
        let mut path = vec![(start, 0)];
        while let Some((node, followed)) = path.last_mut() {
            let Some(&next) = edges[*node].get(*followed) else {
                seen[*node] = Seen::Done;
                path.pop();
                continue;
            };
            *followed += 1;
            match seen[next] {
                Seen::Done => {}
                Seen::Not => {
                    seen[next] = Seen::OnPath;
                    path.push((next, 0));
                }
                Seen::OnPath => {
                    let from = path.iter().position(|(node, _)| *node == next).expect("it is on the path");
                    return Some(from_smallest(path[from..].iter().map(|(node, _)| *node).collect()));
                }
            }
        }
    }
    None
}

fn from_smallest(mut cycle: Vec<usize>) -> Vec<usize> {
    let smallest = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
    cycle.rotate_left(smallest);
    cycle
}

/// Returns cycles that share no node, at most `count_max` of them; the graph loses the nodes of each before the next is
/// looked for.
pub fn find_disjoint(mut edges: Vec<Vec<usize>>, count_max: usize) -> Vec<Vec<usize>> {
    let mut cycles = Vec::new();
    while cycles.len() < count_max
        && let Some(cycle) = find(&edges)
    {
        for node in &cycle {
            edges[*node].clear();
        }
        cycles.push(cycle);
    }
    cycles
}

/// Returns the strongly connected component of each node (Tarjan). Components are numbered so that every edge leads to
/// its own component or to one with a smaller number.
pub fn components(edges: &[Vec<usize>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut order = vec![UNSEEN; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut component = vec![UNSEEN; edges.len()];
    let mut open = Vec::new();
    let (mut next_order, mut next_component) = (0, 0);
    for start in 0..edges.len() {
        if order[start] != UNSEEN {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some(&(node, followed)) = path.last() {
            if followed == 0 {
                order[node] = next_order;
                low[node] = next_order;
                next_order += 1;
                open.push(node);
            }
            if let Some(&next) = edges[node].get(followed) {
                path.last_mut().expect("looked at above").1 += 1;
                if order[next] == UNSEEN {
                    path.push((next, 0));
                } else if component[next] == UNSEEN {
                    low[node] = low[node].min(order[next]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == order[node] {
                while let Some(member) = open.pop() {
                    component[member] = next_component;
                    if member == node {
                        break;
                    }
                }
                next_component += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cycles_are_told_in_order() {
        assert_eq!(find(&[vec![1], vec![2], vec![]]), None);
        assert_eq!(find(&[vec![0]]), Some(vec![0]));
        assert_eq!(find(&[vec![], vec![3], vec![1], vec![2, 0]]), Some(vec![1, 3, 2]));
        assert_eq!(find_disjoint(vec![vec![1], vec![0], vec![3], vec![2]], 10), [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let chain: Vec<_> = (1..100_000).map(|next| vec![next]).chain([vec![]]).collect();
        assert_eq!(find(&chain), None);
        assert_eq!(components(&chain).len(), 100_000);
    }

    /// Whether `to` can be reached from `from` by at least one edge.
    fn reaches(edges: &[Vec<usize>], from: usize, to: usize) -> bool {
        let mut seen = vec![false; edges.len()];
        let mut todo = edges[from].clone();
        while let Some(node) = todo.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                todo.extend(&edges[node]);
            }
        }
        seen[to]
    }

    proptest! {
        #[test]
        fn components_are_what_reaches_each_other(
            edges in (1..9usize).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..n, 0..4), n))
        ) {
            let component = components(&edges);
            for one in 0..edges.len() {
                for other in 0..edges.len() {
                    let together = one == other || (reaches(&edges, one, other) && reaches(&edges, other, one));
                    prop_assert_eq!(component[one] == component[other], together);
                    if edges[one].contains(&other) {
                        prop_assert!(component[other] <= component[one]);
                    }
                }
            }
            prop_assert_eq!(find(&edges).is_some(), (0..edges.len()).any(|node| reaches(&edges, node, node)));
        }
    }
}
