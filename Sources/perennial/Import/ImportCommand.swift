import ArgumentParser
import Tracking

/// `perennial import`
struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Stores many receipts for the worker to verify.",
        discussion: """
            One JSON object a line: {"app": …, "customer": …, "receipt": …} and, where known, "storefront", "price" and
            "currency". Bad lines are reported with their number and skipped. Running it again stores nothing twice, and
            an import never takes a live subscription from its owner.

            Exits 1 only when nothing could be stored, the file could not be read or the database went away.

            Example:
              perennial import receipts.ndjson
              zcat receipts.ndjson.gz | perennial import -
            """)

    @Argument(help: ArgumentHelp("The file of lines, or - for standard input.", valueName: "FILE|-"))
    var file: String

    @Option(help: ArgumentHelp("Skip the lines before this one.", valueName: "N"))
    var fromLine = 1

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard fromLine >= 1 else { throw ValidationError("--from-line is at least 1.") }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let input = InputFile(file)
        let handle = try input.open()
        let progress = try await withLedger(settings) { ledger in
            try await withTracker(settings, ledger: ledger) { tracker in
                var importer = Importer(tracker: tracker, fromLine: fromLine, bytesTotal: input.byteCount)
                try await importer.run(LineReader(handle, lineBytesMax: Importer.lineBytesMax))
                return importer.progress
            }
        }
        say(progress.summary)
        if progress.stored == 0, progress.bad > 0 {
            throw Failure("No line of \(input.name) could be stored; the lines above say why.")
        }
    }
}
