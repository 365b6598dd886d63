import Foundation
import Ledger
import Postgres
import Tracking

/// One run of `perennial import`: its start, its reports on the way, its end.
struct ImportRun {
    let tracker: Tracker
    let input: InputFile
    /// The first line to store, if the operator gave one.
    let fromLine: Int?
    /// Whether to begin at the start although an earlier run stored some of the file.
    let again: Bool

    private var progress = ImportProgress()
    private var shown = ProgressLine()
    private var badLines = BadLines()
    private var waitingBefore: [WaitingReceipts] = []
    private var lastForecast = 0.0

    init(tracker: Tracker, input: InputFile, fromLine: Int?, again: Bool) {
        self.tracker = tracker
        self.input = input
        self.fromLine = fromLine
        self.again = again
    }

    /// Imports the file and reports the result.
    mutating func run() async throws {
        let handle = try input.open()
        let ongoing = try await open(handle)
        let reader = try reader(of: handle, ongoing)
        waitingBefore = try await tracker.ledger.intake.waiting()
        tell(waitingBefore)
        do {
            defer { shown.clear() }
            try await Importer(tracker: tracker, ongoing: ongoing, fromLine: fromLine ?? 1)
                .run(reader) { try await take($0) }
        } catch let error as DatabaseError {
            throw Failure(stopped(by: error, isResumable: ongoing != nil && fromLine == nil))
        }
        printLine(progress.summary(elapsedSeconds: shown.elapsedSeconds))
        try await tellEnd(of: ongoing)
        tell(try await tracker.ledger.intake.waiting())
        if progress.stored == 0, progress.bad > 0 {
            throw Failure("No line of \(input.name) could be stored; the lines above say why.")
        }
    }

    /// Opens the import in the ledger; nil for input that cannot be read from the middle.
    private func open(_ handle: FileHandle) async throws -> Import? {
        guard let file = try input.identity(handle) else { return nil }
        return try await tracker.ledger.intake.openImport(of: file, again: again)
    }

    private mutating func reader(of handle: FileHandle, _ ongoing: Import?) throws -> BlockReader {
        progress.bytesTotal = input.byteCount
        guard let ongoing, fromLine == nil, ongoing.nextLine > 1 else { return try BlockReader(handle) }
        progress.line = Int(ongoing.nextLine) - 1
        progress.linesBefore = progress.line
        progress.bytesDone = Int(ongoing.nextByte)
        progress.bytesBefore = progress.bytesDone
        let isAll = progress.bytesDone == progress.bytesTotal
        printError(
            isAll
                ? "\(progress.line.of("line", "lines")) of \(input.name), all there are, were stored before; --again reads them again."
                : "Going on with \(input.name) after line \(progress.line); --again reads it from the start.")
        return try BlockReader(handle, from: progress.bytesDone, line: progress.line + 1)
    }

    private mutating func take(_ block: StoredBlock) async throws {
        progress.add(block)
        for line in block.bad {
            if let sentence = badLines.sentence(for: line) { shown.printLine(sentence) }
        }
        shown.show(progress)
        guard shown.elapsedSeconds - lastForecast >= Importer.forecastSeconds else { return }
        lastForecast = shown.elapsedSeconds
        tell(try await tracker.ledger.intake.waiting())
    }

    private func tell(_ waiting: [WaitingReceipts]) {
        var forecast = CheckForecast()
        if shown.elapsedSeconds > 0, progress.line > 0 {
            forecast.earlier = (waitingBefore, shown.elapsedSeconds)
            forecast.storedSince = progress.new
        }
        for sentence in forecast.sentences(for: waiting) { shown.printLine(sentence) }
    }

    private func tellEnd(of ongoing: Import?) async throws {
        if progress.cutShort > 0 {
            printLine(
                "\(progress.cutShort.of("line promises", "lines promise")) access for more than \(Provisional.daysMax) days; it ends after "
                    + "\(Provisional.daysMax).")
        }
        guard let ongoing, fromLine == nil else { return }
        let bad = try await tracker.ledger.intake.finish(ongoing)
        guard bad > 0 else { return }
        printLine(
            "\(bad.of("line", "lines")) of \(input.name) \(bad == 1 ? "was" : "were") bad in all; mend \(bad == 1 ? "it" : "them") and run the import again, which then reads every line."
        )
    }

    private func stopped(by error: DatabaseError, isResumable: Bool) -> String {
        let stored = "The import stopped after line \(progress.line): \(error.message)"
        return isResumable
            ? "\(stored) Run it again later; it goes on there."
            : "\(stored) Run it again later, with --from-line \(progress.line + 1) to spare time."
    }
}
