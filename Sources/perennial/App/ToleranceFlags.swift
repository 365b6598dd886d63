import ArgumentParser

/// The tolerances of an app for late answers: flags of `app set`. Each applies to a subscription from its next answer
/// on.
struct ToleranceFlags: ParsableArguments {
    /// The longest leeway, in minutes: a week. A subscription without a renewal for longer than that is not paid.
    static let leewayMinutesMax = 10_080
    /// The longest outage allowance, in days: a year.
    static let outageDaysMax = 365

    @Option(
        help: ArgumentHelp(
            "Minutes that an expected renewal may be late before access ends, 120 unless set.", valueName: "N"))
    var leewayMinutes: Int?

    @Option(help: ArgumentHelp("The same in Apple's sandbox, 5 unless set.", valueName: "N"))
    var sandboxLeewayMinutes: Int?

    @Option(
        help: ArgumentHelp(
            "Days that access goes on while Apple cannot be asked about an expected renewal, 30 unless set.",
            valueName: "N"))
    var outageDays: Int?

    /// Whether any was given.
    var isGiven: Bool { leewayMinutes != nil || sandboxLeewayMinutes != nil || outageDays != nil }

    func validate() throws {
        for (flag, minutes) in [
            ("--leeway-minutes", leewayMinutes), ("--sandbox-leeway-minutes", sandboxLeewayMinutes),
        ] {
            guard minutes.map((0...Self.leewayMinutesMax).contains) ?? true else {
                throw ValidationError("\(flag) is a number from 0 to \(Self.leewayMinutesMax).")
            }
        }
        guard outageDays.map((0...Self.outageDaysMax).contains) ?? true else {
            throw ValidationError("--outage-days is a number from 0 to \(Self.outageDaysMax).")
        }
    }
}
