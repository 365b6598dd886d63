import ArgumentParser
import Foundation
import Subscriptions
import Tracking

struct PruneCommand: AsyncParsableCommand {
    static let auditMonthsUsual = 36
    static let signedDaysUsual = 90

    static let configuration = CommandConfiguration(
        "prune", "Removes old answers of Apple's that are no longer needed, old rows of the audit, and signatures.",
        notes: """
            Every receipt keeps its newest answer, and each older answer that says something no newer one says. Before \
            the command removes an answer, it recomputes all that the receipt holds with the answer and without it. \
            The answer stays where the results differ, so `perennial rebuild` finds the same afterwards. An empty \
            month gives its disk space back. Of signed texts older than --keep-signed-days the claims stay that facts \
            rest on.

            The command runs beside workers, and can run again after an interruption. It needs the settings of the \
            workers.
            """,
        examples: "perennial prune --keep-months 12")

    @Option(1...1_200, help: ArgumentHelp("Keep every answer of this month and of N months before it.", valueName: "N"))
    var keepMonths: Int

    @Option(1...1_200, help: ArgumentHelp("The same for the audit.", valueName: "N"))
    var auditMonths = Self.auditMonthsUsual

    @Option(1...36_500, help: ArgumentHelp("Keep signed texts of N days as Apple sent them.", valueName: "N"))
    var keepSignedDays = Self.signedDaysUsual

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        try await flags.ledger { ledger in
            let now = try await ledger.now()
            let cutoff = try Self.start(ofMonth: keepMonths, before: now)
            let signedCutoff = now - .days(Int64(keepSignedDays))
            // Recorded before it begins, so that an interrupted one is known too; `ledger.pruned_receipt` counts the
            // removed answers.
            try await ledger.audit(.pruned, detail: ["before": cutoff.iso8601])
            let sum = try await pruneAnswers(in: ledger, before: cutoff)
            let signed = try await reduceSigned(in: ledger, before: signedCutoff)
            let months = try await ledger.operations.dropEmptyMonths(before: cutoff)
            let audit = try await ledger.operations.pruneAudit(
                before: try Self.start(ofMonth: auditMonths, before: now))
            printLine(
                "Answers from before \(cutoff.iso8601): removed \(sum.dropped), still needed \(sum.needed), left as they "
                    + "are, because they cannot be rebuilt in full, \(sum.untouched). Months given back: \(months). Rows of the "
                    + "audit removed: \(audit).")
            printLine(
                "Signed texts from before \(signedCutoff.iso8601): reduced \(signed.reduced), from "
                    + "\(signed.bytes.before) to \(signed.bytes.after) bytes; left as they are \(signed.untouched).")
        }
    }

    private func pruneAnswers(in ledger: SubscriptionLedger, before cutoff: Instant) async throws -> PruneBatch {
        let newest = try await ledger.customers.receipts(limit: 1).first?.id
        var sum = PruneBatch()
        var line = ProgressNote()
        var after: Int64? = 0
        while let receipt = after {
            let batch = try await ledger.operations.prune(after: receipt, before: cutoff, reading: .present)
            sum.add(batch)
            after = batch.next
            if let next = after, let newest {
                line.show("receipt \(next) of \(newest): removed \(sum.dropped), still needed \(sum.needed)")
            }
        }
        line.clear()
        return sum
    }

    private func reduceSigned(in ledger: SubscriptionLedger, before cutoff: Instant) async throws -> ReducedBatch {
        var sum = ReducedBatch()
        var line = ProgressNote()
        for what in ["notification", "answer"] {
            var after: Int64? = 0
            while let last = after {
                let batch =
                    what == "answer"
                    ? try await ledger.operations.reduceAnswers(after: last, before: cutoff, by: .present)
                    : try await ledger.operations.reduceNotifications(after: last, before: cutoff, by: .present)
                sum.add(batch)
                after = batch.next
                if let next = after { line.show("signed texts: \(what) \(next), reduced \(sum.reduced)") }
            }
        }
        line.clear()
        return sum
    }

    /// Returns the start of the month that is `months` months before the month of an instant, in UTC.
    static func start(ofMonth months: Int, before instant: Instant) throws -> Instant {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let date = Date(timeIntervalSince1970: Double(instant.milliseconds) / 1000)
        let month = calendar.dateComponents([.year, .month], from: date)
        guard let start = calendar.date(from: month),
            let earlier = calendar.date(byAdding: .month, value: -months, to: start)
        else { throw Failure("The database's clock says \(instant.iso8601), which is no time to prune by.") }
        return Instant(milliseconds: Int64(earlier.timeIntervalSince1970 * 1000))
    }
}
