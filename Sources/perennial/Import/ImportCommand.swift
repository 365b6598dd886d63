import ArgumentParser
import Tracking

/// `perennial import`
struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Stores many receipts for the worker to verify.",
        discussion: """
            One JSON object a line: {"app": …, "customer": …, "receipt": …} and, where known, "storefront", "price" \
            with "currency", "product", "expires" and "provisional_until" (ISO 8601). Until that instant, at most 90 \
            days, the customer has what the catalog says of the product, unless Apple is asked before; then Apple's \
            answer counts.

            Bad lines are reported with their number and skipped. A run that was stopped or killed goes on where it \
            was when the same file is imported again. Nothing is stored twice, several imports may run at once, and an \
            import never takes a live subscription from its owner. Apple is asked about the receipts nearest to their \
            expiry first.

            Exits 1 only when nothing could be stored, the file could not be read or the database went away.

            Examples:
              perennial import receipts.ndjson
              zcat receipts.ndjson.gz | perennial import -
            """)

    @Argument(help: ArgumentHelp("The file of lines, or - for standard input.", valueName: "FILE|-"))
    var file: String

    @Option(help: ArgumentHelp("Skip the lines before this one, whatever earlier runs did.", valueName: "N"))
    var fromLine: Int?

    @Flag(help: "Read the file from its start although an earlier run stored some of it.")
    var again = false

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        if let fromLine, fromLine < 1 { throw ValidationError("--from-line is at least 1.") }
        guard fromLine == nil || !again else {
            throw ValidationError("--again begins at line 1; leave --from-line out.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        try await withLedger(settings) { ledger in
            try await withTracker(settings, ledger: ledger) { tracker in
                var run = ImportRun(tracker: tracker, input: InputFile(file), fromLine: fromLine, again: again)
                try await run.run()
            }
        }
    }
}
