//! Rounding and sharing of cents.
//!
//! The rule of rounding: an amount that is not whole cents is rounded to the nearest cent, halves up, on its line, at
//! once. Sums are taken of rounded amounts only, so that the lines of a receipt always add up to its total.

/// An amount in hundredths of the currency's unit.
pub type Cents = i64;

/// Basis points in a whole.
pub const WHOLE_BASIS_POINTS: u32 = 10_000;

/// Returns a share of an amount that is not negative, rounded half up.
pub fn share(amount: Cents, basis_points: u32) -> Cents {
    let whole = i128::from(WHOLE_BASIS_POINTS);
    let rounded = (i128::from(amount) * i128::from(basis_points) + whole / 2).div_euclid(whole);
    Cents::try_from(rounded).unwrap_or(Cents::MAX)
}

/// Splits `amount` over `weights` in proportion, to the cent.
///
/// Each part is rounded down; the cents left over go to the largest remainders, the first line first among equals.
/// Where all weights are zero there is nothing to split over, and every part is zero.
pub fn allocate(amount: Cents, weights: &[Cents]) -> Vec<Cents> {
    let total: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
    if total == 0 {
        return vec![0; weights.len()];
    }
    let products: Vec<i128> = weights.iter().map(|&weight| i128::from(amount) * i128::from(weight)).collect();
    let mut parts: Vec<i128> = products.iter().map(|product| product / total).collect();
    let left = i128::from(amount) - parts.iter().sum::<i128>();

    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|&line| std::cmp::Reverse(products[line] % total));
    for &line in by_remainder.iter().take(usize::try_from(left).unwrap_or(0)) {
        parts[line] += 1;
    }
    parts.into_iter().map(|part| Cents::try_from(part).expect("a part is no larger than the amount")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up() {
        let cases = [(0, 1_900, 0), (50, 100, 1), (49, 100, 0), (149, 100, 1), (150, 100, 2), (999, 1_900, 190)];
        for (amount, basis_points, rounded) in cases {
            assert_eq!(share(amount, basis_points), rounded, "{basis_points} of {amount}");
        }
        assert_eq!(share(Cents::MAX, WHOLE_BASIS_POINTS), Cents::MAX);
    }

    #[test]
    fn parts_add_up_to_the_amount() {
        let cases: [(Cents, &[Cents], &[Cents]); 7] = [
            (100, &[1, 1, 1], &[34, 33, 33]),
            (101, &[1, 1, 1], &[34, 34, 33]),
            (10, &[999, 1], &[10, 0]),
            (500, &[3_998, 1_250, 0], &[381, 119, 0]),
            (0, &[5, 5], &[0, 0]),
            (7, &[0, 0], &[0, 0]),
            (7, &[], &[]),
        ];
        for (amount, weights, parts) in cases {
            assert_eq!(allocate(amount, weights), parts, "{amount} over {weights:?}");
        }
    }

    #[test]
    fn parts_never_exceed_their_weights() {
        // What makes it safe to take an order's discount off its lines: no line falls below zero.
        for amount in 0..=60 {
            let weights = [1, 0, 7, 13, 39];
            let parts = allocate(amount, &weights);
            assert_eq!(parts.iter().sum::<Cents>(), amount);
            assert!(parts.iter().zip(weights).all(|(&part, weight)| (0..=weight).contains(&part)), "{parts:?}");
        }
    }
}
