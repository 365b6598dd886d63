import ArgumentParser
import JSON
import Subscriptions
import Tracking

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "verify", "Checks every invariant against the live database; 2 where one is violated.",
        notes: """
            The command reads slice by slice, without a lock, beside workers and servers. It checks each suspected \
            violation again a moment later. Each violation has a line with the action to take. With --repair, the \
            command gives a subscription or purchase that no worker would check to a receipt that can vouch for it, \
            schedules the receipt and writes a row to the audit. The exit status is 0 when no violation is left.
            """,
        examples: """
            perennial verify
            perennial verify --check coverage --check poller --repair
            perennial verify --format json
            """)

    @Flag(help: "Restore coverage: coverage, purchase_coverage, poller, next_check and age.")
    var repair = false

    @Option(help: ArgumentHelp("Only this invariant; may be repeated.", valueName: "NAME"))
    var check: [Invariant] = []

    @Option(help: "text for people, or json, which is stable.")
    var format = TextForm.text

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let sum = try await withLedger(settings) { ledger in
            let own = VerifyTerms(leaseSeconds: settings.leaseSeconds, speedup: settings.pollSpeedup)
            return try await look(in: ledger, try await ledger.operations.verifyTerms(otherwise: own))
        }
        switch format {
        case .text:
            for awaiting in sum.awaiting { printLine(awaiting.sentence.visible) }
            printLine(sum.sentence)
        case .json: printExactly(sum.json.rendered(pretty: true))
        }
        if sum.left > 0 { throw ExitStatus.foundDifference }
    }

    private func look(in ledger: SubscriptionLedger, _ terms: VerifyTerms) async throws -> VerifySum {
        let invariants = check.isEmpty ? Set(Invariant.allCases) : Set(check)
        var sum = VerifySum(invariants: invariants)
        var line = ProgressNote()
        try await ledger.operations.verify(invariants, terms) { step in
            sum.add(step)
            if !step.violations.isEmpty { line.clear() }
            for violation in step.violations {
                let isRepaired = try await repaired(violation, in: ledger, terms)
                sum.add(violation, isRepaired: isRepaired)
                if format == .text { printLine(violation.sentence.visible + (isRepaired ? " It is repaired." : "")) }
            }
            line.show(sum.note)
        }
        line.clear()
        if invariants.contains(.orders) { sum.awaiting = try await ledger.operations.ordersAwaitingRelease() }
        return sum
    }

    private func repaired(
        _ violation: Violation, in ledger: SubscriptionLedger, _ terms: VerifyTerms
    ) async throws -> Bool {
        guard repair, violation.invariant.isRepairable else { return false }
        guard try await ledger.operations.repair(violation, terms) != nil else { return false }
        return try await ledger.operations.remaining(of: [violation], terms).isEmpty
    }
}

extension Invariant: ExpressibleByArgument {}

struct VerifySum {
    let invariants: Set<Invariant>
    private(set) var keys: Int64 = 0
    private(set) var found: [(violation: Violation, isRepaired: Bool)] = []
    /// Paid orders that have a reason to have no delivery yet.
    var awaiting: [OrdersAwaitingRelease] = []

    mutating func add(_ step: VerifyStep) { keys += step.keys }

    mutating func add(_ violation: Violation, isRepaired: Bool) { found.append((violation, isRepaired)) }

    var left: Int { found.count { !$0.isRepaired } }

    var note: String { "\(keys.of("row", "rows")) looked at, \(found.count.of("violation", "violations"))" }

    var sentence: String {
        let looked = invariants.count.of("invariant", "invariants")
        guard !found.isEmpty else { return "No violation of \(looked)." }
        let repaired = found.count - left
        return "\(found.count.of("violation", "violations")) of \(looked), repaired: \(repaired), left: \(left)."
    }

    var json: JSONValue {
        [
            "checks": .array(invariants.map(\.rawValue).sorted().map { .string($0) }),
            "found": .integer(Int64(found.count)), "left": .integer(Int64(left)),
            "repaired": .integer(Int64(found.count - left)),
            "awaiting_release": .array(
                awaiting.map {
                    [
                        "bundle_id": .string($0.bundleID.text), "product_id": .string($0.productID.text),
                        "orders": .integer(Int64($0.orders)),
                    ]
                }),
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

extension OrdersAwaitingRelease {
    var sentence: String {
        let paid = orders.of("paid order", "paid orders") + (orders == Int(Self.ordersMax) ? " or more" : "")
        return "\(bundleID): workers go through what the catalog released of \(productID); "
            + "without a delivery until then: \(paid)."
    }
}
