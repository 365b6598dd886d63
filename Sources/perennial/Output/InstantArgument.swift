import ArgumentParser
import Foundation
import Server
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

extension Instant {
    /// The wall clock, for logs and for answers without a clock of Apple's.
    static var wallClock: Instant {
        Instant(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }
}

extension JSONValue {
    /// Returns an instant in ISO 8601, or `null`.
    static func optional(_ instant: Instant?) -> JSONValue {
        .optional(instant?.iso8601)
    }
}
