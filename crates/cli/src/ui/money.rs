//! Tokens and dollars as people read them.

use ostler_core::fact::Tokens;

/// `3000 in, 30 out, $0.0158`; `None` when nothing is known.
pub fn spending(tokens: Option<Tokens>, cost_usd: Option<f64>) -> Option<String> {
    let tokens = tokens.map(|tokens| format!("{} in, {} out", tokens.input, tokens.output));
    let parts: Vec<String> = tokens.into_iter().chain(dollars(cost_usd)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `$0.0158`, `<$0.0001`; `None` when it is unknown.
pub fn dollars(cost_usd: Option<f64>) -> Option<String> {
    match cost_usd? {
        // An agent that does not know the price reports 0.
        cost if cost <= 0.0 => None,
        cost if cost < 0.000_05 => Some("<$0.0001".to_owned()),
        cost => Some(format!("${cost:.4}")),
    }
}

/// `$0.02`, `$13.20`, `<$0.01`: as much as a column of a list has room for.
pub fn rounded(cost_usd: Option<f64>) -> Option<String> {
    match cost_usd? {
        // An agent that does not know the price reports 0.
        cost if cost <= 0.0 => None,
        cost if cost < 0.005 => Some("<$0.01".to_owned()),
        cost => Some(format!("${cost:.2}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_said() {
        let tokens = Some(Tokens { input: 3000, output: 30 });
        assert_eq!(spending(tokens, Some(0.015_75)).as_deref(), Some("3000 in, 30 out, $0.0158"));
        assert_eq!(spending(tokens, Some(0.0)).as_deref(), Some("3000 in, 30 out"));
        assert_eq!(spending(None, None), None);
        let costs = [0.0, 0.000_007, 0.000_06, 0.0013].map(|cost| dollars(Some(cost)).unwrap_or_default());
        assert_eq!(costs, ["", "<$0.0001", "$0.0001", "$0.0013"]);
        let costs = [0.0, 0.000_007, 0.0013, 0.02].map(|cost| rounded(Some(cost)).unwrap_or_default());
        assert_eq!(costs, ["", "<$0.01", "<$0.01", "$0.02"]);
    }
}
