import Ledger
import Server
import Subscriptions

extension SweepStanding {
    /// The factor and why it is that, in one sentence.
    var text: String {
        let refunds =
            "\(reported) of \(reported + missed) refunds reported within 24 h, lower bound \(lowerBound.thousandths)"
        let heard =
            lastNotificationAt.map { "last notification \((now - $0).spoken) ago" } ?? "no verified notification yet"
        let silence = isSilent && lastNotificationAt != nil ? ", silent for longer than \(silenceLongest.spoken)" : ""
        return "Sweeps: \(bundleID) x\(factor): \(refunds); \(heard)\(silence)"
    }

    /// The same with stable keys.
    var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "factor": .integer(Int64(factor)), "reported": .integer(reported),
            "missed": .integer(missed), "lower_bound": .string(lowerBound.thousandths),
            "last_notification_at": .optional(lastNotificationAt),
            "silence_longest_s": .integer(silenceLongest.milliseconds / 1_000), "silent": .bool(isSilent),
        ]
    }
}

extension Double {
    /// A share with three decimals, rounded down, so that it never looks better than it is.
    fileprivate var thousandths: String {
        let count = Int64(self * 1_000)
        let digits = String(count % 1_000)
        return "\(count / 1_000)." + String(repeating: "0", count: 3 - digits.count) + digits
    }
}

extension Delay {
    /// The delay in its largest whole unit.
    fileprivate var spoken: String {
        let seconds = max(0, milliseconds / 1_000)
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7_200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3_600) h"
        default: "\(seconds / 86_400) d"
        }
    }
}
