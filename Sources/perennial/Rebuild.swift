import ArgumentParser
import Subscriptions
import Tracking

struct RebuildCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "rebuild", "Recomputes facts, timelines and states from what Apple said, as it is stored.",
        notes: """
            The command reads the stored observations again by the present rules. It writes each difference as a new \
            version and a row of ledger.correction, but no event, because nothing happened at Apple. With --verify it \
            changes nothing: it lists the differences, and the exit status is 2 when there are any. Where the kept \
            observations are not enough to compute a subscription or purchase, the command lists it and leaves it as \
            it is.

            The command runs beside workers, and can run again after an interruption. It needs the settings of the \
            workers.
            """,
        examples: """
            perennial rebuild --verify
            perennial rebuild --app com.example.app --customer c1
            """)

    @Flag(help: "Only compare: list what differs and exit with 2, changing nothing.")
    var verify = false

    @Option(help: ArgumentHelp("Only this app.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("Only what this customer's receipts hold; goes with --app.", valueName: "C"))
    var customer: String?

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard customer == nil || app != nil else { throw ValidationError("--customer goes with --app.") }
    }

    func run() async throws {
        let scope = RebuildScope(app: app, customer: customer)
        let sum = try await flags.ledger { ledger in
            try await ledger.operations.require(scope)
            // Recorded before the rebuild begins, so that an interrupted one is known too.
            if !verify { try await ledger.audit(.rebuilt, app: app, customer: customer) }
            return try await rebuild(scope, in: ledger)
        }
        printLine(sum.sentence(verifying: verify))
        if verify, sum.differences > 0 { throw ExitStatus.foundDifference }
    }

    private func rebuild(_ scope: RebuildScope, in ledger: SubscriptionLedger) async throws -> RebuildSum {
        var sum = RebuildSum(total: Int(try await ledger.operations.rebuildable(scope)))
        var line = ProgressNote()
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await ledger.operations.rebuild(from: here, scope, correcting: !verify, reading: .present)
            line.clear()
            for difference in batch.differences { printLine(difference.sentence.visible) }
            for gap in batch.gaps { printLine("\(gap.subject) cannot be rebuilt in full: \(gap.reason)".visible) }
            sum.add(batch)
            line.show(sum.note)
            place = batch.next
        }
        line.clear()
        return sum
    }
}

extension RebuildDifference {
    var sentence: String {
        "\(subject): \(fact) is \(stored ?? "nothing"), the observations give \(rebuilt ?? "nothing")"
    }
}

struct RebuildSum {
    /// Subscriptions, purchases and customers to examine; those that are examined, differ and are corrected count alike.
    let total: Int
    private(set) var examined = 0
    private(set) var differing = 0
    private(set) var corrected = 0
    /// The facts that differ, of which one subscription, purchase or customer may have many.
    private(set) var differences = 0
    private(set) var gaps = 0

    mutating func add(_ batch: RebuildBatch) {
        examined += batch.examined
        differing += Set(batch.differences.map(\.subject)).count
        corrected += batch.corrected
        differences += batch.differences.count
        gaps += batch.gaps.count
    }

    var note: String { "\(examined) of \(total) looked at, \(differing) different" }

    func sentence(verifying: Bool) -> String {
        let looked = "Subscriptions, purchases and customers looked at: \(examined)"
        let found =
            differences == 0 ? "none differs" : "different: \(differing), in \(differences.of("fact", "facts"))"
        let done = verifying || differences == 0 ? "" : "; corrected: \(corrected)"
        let left = gaps == 0 ? "" : "; left as they are, because they cannot be rebuilt in full: \(gaps)"
        return "\(looked); \(found)\(done)\(left)."
    }
}
