import ArgumentParser
import Subscriptions

extension Instant: ExpressibleByArgument {
    /// Parses an instant from a flag, in ISO 8601.
    package init?(argument: String) {
        self.init(iso8601: argument)
    }
}

extension BundleID: ExpressibleByArgument {
    /// Reads a bundle id from a flag; nil when empty.
    package init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        self.init(argument)
    }
}
