import ArgumentParser
import Ledger
import Server
import Tracking

/// `perennial verify`
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Checks every invariant against the live database; 2 where one is violated.",
        discussion: """
            The command reads slice by slice, without a lock, beside workers and servers. It checks each suspected \
            violation again a moment later. Each violation has a line with the action to take. With --repair, the \
            command gives a subscription or purchase that no worker would check to a receipt that can vouch for it, \
            schedules the receipt and writes a row to the audit. The exit status is 0 when no violation is left.

            Examples:
              perennial verify
              perennial verify --check coverage --check poller --repair
              perennial verify --format json
            """)

    /// The formats of the result.
    enum Form: String, ExpressibleByArgument, CaseIterable {
        case text
        case json
    }

    @Flag(help: "Restore coverage: coverage, purchase_coverage, poller, next_check and age.")
    var repair = false

    @Option(help: ArgumentHelp("Only this invariant; may be repeated.", valueName: "NAME"))
    var check: [Invariant] = []

    @Option(help: "text for people, or json, which is stable.")
    var format = Form.text

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let sum = try await withLedger(settings) { ledger in
            let own = VerifyTerms(leaseSeconds: settings.leaseSeconds, speedup: settings.pollSpeedup)
            return try await look(in: ledger, try await ledger.operations.verifyTerms(otherwise: own))
        }
        switch format {
        case .text: printLine(sum.sentence)
        case .json: printLine(sum.json.rendered(pretty: true))
        }
        if sum.left > 0 { throw RebuildCommand.foundDifference }
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
                if format == .text { printLine(violation.sentence + (isRepaired ? " It is repaired." : "")) }
            }
            line.show(sum.note)
        }
        line.clear()
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
