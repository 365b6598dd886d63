/// When refusals of once-verified receipts are Apple's fault and not the receipts'.
///
/// Apple vouched for these receipts lately, so they are canaries: single ones go bad, for an account is deleted, but
/// many at once only with Apple itself. A receipt that was refused before, or that was not asked about for long, may be
/// gone: after a long stop many of those come due together. The share is of the answers about an app's once-verified receipts, not of all
/// that are stored: at ten million receipts no outage of ten minutes could refuse 2 % of those, so few are asked about.
enum CanaryLimits {
    /// How far back refusals and answers are counted, and how long it must have been quiet when an incident ends.
    static let windowSeconds = 600.0
    /// A larger share of the answers makes an incident, in percent.
    static let sharePercent: Int32 = 2
    /// Different receipts that must have been refused, whatever their share: a small app loses one or two as well. As
    /// many must be vouched for again before an incident ends.
    static let receiptsMin: Int32 = 3
    /// How long Apple's word for a receipt makes it a canary, in days under the speed-up: a day longer than the longest
    /// stretch between two looks for refunds.
    static let vouchedDays: Int64 = 31
    /// What was refused is asked about again at this pace, in receipts a second.
    static let askAgainPerSecond = 10.0
    /// All of it within this time, however much it is.
    static let askAgainWithinSeconds = 3_600.0
    /// Receipts that one statement takes back or asks about again, at most.
    static let receiptsAtOnceMax: Int32 = 2_000
}
