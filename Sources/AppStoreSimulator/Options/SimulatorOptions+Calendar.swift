extension SimulatorOptions {
    /// The length of a month of the calendar, a twelfth of 365.25 days, in seconds.
    package static let calendarMonthSeconds = 2_629_800.0
    private static let yearMilliseconds: Int64 = 365 * 86_400_000

    /// Returns the options of a second app, whose customers live at the speed of the calendar: the first one arrived a
    /// year before the instant in milliseconds since 1970, `customers` since then, and as many arrive in each later
    /// year.
    package func calendarApp(_ bundleID: String, customers: Int, at milliseconds: Int64) -> SimulatorOptions {
        var options = self
        // Receipts of one store are forged ones for the other.
        options.seed = seed &+ 1
        options.bundleID = bundleID
        options.customers = 0
        options.notifications = nil
        options.sandboxCustomers = 0
        // A trial lasts a week of a year, so few run at a time.
        if traits.freeTrial > 0 { options.traits.freeTrial = 0.5 }
        // Some pay a year month by month, and some buy for a group or have a seat of one.
        if traits.namesPlan > 0 {
            (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.12, 0.05, 0.05)
        }
        options.arrivalsPerMonth = Double(customers) / 12
        options.monthSeconds = Self.calendarMonthSeconds
        options.epochMilliseconds = milliseconds - Self.yearMilliseconds
        return options
    }
}
