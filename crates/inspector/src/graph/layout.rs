//! Places the nodes of a graph on a plane.
//!
//! The layout is force-directed: nodes repel each other, links pull. It starts from fixed places and
//! runs a fixed number of rounds, so the same graph always looks the same, and a large one takes no
//! longer than [`WORK_MAX`] allows.

/// A place on the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f32,
    pub(super) y: f32,
}

/// How many pairs of nodes are looked at in all rounds together. This takes 5 ms.
const WORK_MAX: usize = 1_200_000;
const ROUNDS_MAX: usize = 200;

/// How strongly a node is drawn to the middle, and to the other end of a link, per distance. With these,
/// 300 nodes are about as dense in the middle as at the edge; a pull that grows with the square of the
/// distance collapses well connected graphs into one blot.
const GRAVITY: f32 = 0.25;
const PULL: f32 = 0.15;

/// The angle between neighbors on a spiral that leaves no gaps.
const GOLDEN_ANGLE: f32 = 2.399_963_2;

/// Returns a place for each of `count` nodes, within 0 and 1 in both directions.
pub(super) fn places(count: usize, links: &[(usize, usize)], center: Center) -> Vec<Point> {
    let mut points: Vec<Point> = (0..count).map(spiral).collect();
    let pairs = count * count.saturating_sub(1) / 2;
    let rounds = WORK_MAX.checked_div(pairs).unwrap_or(0).min(ROUNDS_MAX);
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    for round in 0..rounds {
        // Cooling: the steps get smaller, so that the layout comes to rest.
        let step = 1.5 * (1.0 - round as f32 / rounds as f32) + 0.02;
        advance(&mut points, links, step, center);
    }
    fitted(&points)
}

/// What happens to the first node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Center {
    /// It stays where it is, in the middle.
    First,
    /// It moves as all others do.
    None,
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn spiral(place: usize) -> Point {
    let (radius, angle) = ((place as f32).sqrt(), place as f32 * GOLDEN_ANGLE);
    Point { x: radius * angle.cos(), y: radius * angle.sin() }
}

/// Moves every node by at most `step`. The distance between neighbors is about 1.
fn advance(points: &mut [Point], links: &[(usize, usize)], step: f32, center: Center) {
    let mut forces = vec![Point::default(); points.len()];
    for (place, one) in points.iter().enumerate() {
        // Gravity keeps parts that are not connected from drifting apart.
        let mut total = Point { x: -GRAVITY * one.x, y: -GRAVITY * one.y };
        for (other_place, other) in points.iter().enumerate().skip(place + 1) {
            let (x, y) = (one.x - other.x, one.y - other.y);
            let weight = 1.0 / (x * x + y * y).max(0.01);
            total.x += x * weight;
            total.y += y * weight;
            if let Some(force) = forces.get_mut(other_place) {
                force.x -= x * weight;
                force.y -= y * weight;
            }
        }
        if let Some(force) = forces.get_mut(place) {
            force.x += total.x;
            force.y += total.y;
        }
    }
    for &(from, to) in links {
        let (Some(&one), Some(&other)) = (points.get(from), points.get(to)) else { continue };
        let (x, y) = (other.x - one.x, other.y - one.y);
        for (place, sign) in [(from, PULL), (to, -PULL)] {
            if let Some(force) = forces.get_mut(place) {
                force.x += x * sign;
                force.y += y * sign;
            }
        }
    }
    let fixed = usize::from(center == Center::First);
    for (point, force) in points.iter_mut().zip(&forces).skip(fixed) {
        let length = (force.x * force.x + force.y * force.y).sqrt().max(1e-6);
        let scale = length.min(step) / length;
        point.x += force.x * scale;
        point.y += force.y * scale;
    }
}

/// Scales points into the unit square.
fn fitted(points: &[Point]) -> Vec<Point> {
    let bounds = |value: fn(&Point) -> f32| {
        let values = points.iter().map(value);
        let low = values.clone().fold(f32::INFINITY, f32::min);
        let high = values.fold(f32::NEG_INFINITY, f32::max);
        (low, (high - low).max(1e-6))
    };
    let ((left, width), (top, height)) = (bounds(|it| it.x), bounds(|it| it.y));
    let place = |value: f32, low: f32, size: f32| {
        if size <= 1e-6 { 0.5 } else { (value - low) / size }
    };
    let fit = |it: &Point| Point { x: place(it.x, left, width), y: place(it.y, top, height) };
    points.iter().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(one: Point, other: Point) -> f32 {
        (one.x - other.x).hypot(one.y - other.y)
    }

    #[test]
    fn the_same_graph_always_looks_the_same() {
        let links = [(0, 1), (1, 2), (3, 4)];
        let places = places(6, &links, Center::None);
        assert_eq!(places, super::places(6, &links, Center::None));
        assert!(places.iter().all(|it| (0.0..=1.0).contains(&it.x) && (0.0..=1.0).contains(&it.y)));
    }

    #[test]
    fn linked_nodes_are_near_each_other_and_no_two_share_a_place() {
        // Two triangles.
        let links = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)];
        let places = places(6, &links, Center::None);
        assert!(distance(places[0], places[1]) < distance(places[0], places[3]), "{places:?}");
        for (place, one) in places.iter().enumerate() {
            assert!(places.iter().skip(place + 1).all(|other| distance(*one, *other) > 0.02));
        }
    }

    #[test]
    fn tiny_graphs_have_a_layout_too() {
        assert_eq!(places(0, &[], Center::First), []);
        assert_eq!(places(1, &[(0, 0)], Center::First), [Point { x: 0.5, y: 0.5 }]);
        assert!(places(2, &[(0, 1), (7, 9)], Center::First).iter().all(|it| it.x.is_finite()));
    }
}
