import ArgumentParser
import Subscriptions

extension Instant: ExpressibleByArgument {
    /// An instant from a flag, in ISO 8601.
    package init?(argument: String) {
        self.init(iso8601: argument)
    }
}

extension BundleID: ExpressibleByArgument {
    /// A bundle id from a flag; empty is none.
    package init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        self.init(argument)
    }
}
