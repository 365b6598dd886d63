import Ledger
import Server
import Subscriptions
import Tracking

/// The result of a verification so far.
struct VerifySum {
    /// The invariants that are verified.
    let invariants: Set<Invariant>
    private var keys: Int64 = 0
    private var found: [(violation: Violation, isRepaired: Bool)] = []

    init(invariants: Set<Invariant>) {
        self.invariants = invariants
    }

    mutating func add(_ step: VerifyStep) { keys += step.keys }

    mutating func add(_ violation: Violation, isRepaired: Bool) { found.append((violation, isRepaired)) }

    /// Violations that were found and not repaired.
    var left: Int { found.count { !$0.isRepaired } }

    /// The progress.
    var note: String { "\(keys.of("row", "rows")) looked at, \(found.count.of("violation", "violations"))" }

    /// The result in one line.
    var sentence: String {
        let looked = invariants.count.of("invariant", "invariants")
        guard !found.isEmpty else { return "No violation of \(looked)." }
        let repaired = found.count - left
        return "\(found.count.of("violation", "violations")) of \(looked), repaired: \(repaired), left: \(left)."
    }

    /// The result as JSON with stable keys.
    var json: JSONValue {
        [
            "checks": .array(invariants.map(\.rawValue).sorted().map { .string($0) }),
            "found": .integer(Int64(found.count)), "left": .integer(Int64(left)),
            "repaired": .integer(Int64(found.count - left)),
            "violations": .array(
                found.map { violation, isRepaired in
                    [
                        "check": .string(violation.invariant.rawValue),
                        "bundle_id": .optional(violation.bundleID?.text),
                        "environment": .optional(violation.environment?.rawValue),
                        "original_transaction_id": .optional(violation.originalTransactionID?.text),
                        "product_id": .optional(violation.productID?.text),
                        "receipt_id": .optional(violation.receiptID?.description),
                        "detail": .string(violation.detail), "advice": .string(violation.invariant.advice),
                        "repaired": .bool(isRepaired),
                    ]
                }),
        ]
    }
}
