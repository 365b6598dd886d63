import ArgumentParser
import Foundation
import Postgres
import Subscriptions
import Tracking

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "import", "Stores many receipts for the worker to verify.",
        notes: """
            One JSON object a line: {"app": …, "customer": …, "receipt": …} and, where known, "storefront", "price" \
            with "currency", "product", "expires" and "provisional_until" (ISO 8601). Until that instant, at most 90 \
            days, the customer has what the catalog says of the product, unless Apple is asked before; then Apple's \
            answer counts.

            Bad lines are reported with their number and skipped. A run that was stopped or killed goes on where it \
            was when the same file is imported again. The last line says how many lines were skipped because they were \
            stored before; --again reads them too, also those of customers who were erased since. Nothing is stored \
            twice, several imports may run at once, and an import never takes a live subscription from its owner. \
            Apple is asked about the receipts nearest to their expiry first.

            Exits 1 only when nothing could be stored, the file could not be read or the database went away.
            """,
        examples: """
            perennial import receipts.ndjson
            zcat receipts.ndjson.gz | perennial import -
            """)

    @Argument(help: ArgumentHelp("The file of lines, or - for standard input.", valueName: "FILE|-"))
    var file: InputFile

    @Option(
        1...Int.max, help: ArgumentHelp("Skip the lines before this one, whatever earlier runs did.", valueName: "N"))
    var fromLine: Int?

    @Flag(help: "Read the file from its start although an earlier run stored some of it.")
    var again = false

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard fromLine == nil || !again else {
            throw ValidationError("--again begins at line 1; leave --from-line out.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        try await withLedger(settings) { ledger in
            try await withTracker(settings, ledger: ledger) { tracker in
                var run = ImportRun(tracker: tracker, input: file, fromLine: fromLine, again: again)
                try await run.run()
            }
        }
    }
}

/// One run of `perennial import`: its start, its reports on the way, its end.
private struct ImportRun {
    let tracker: Tracker
    let input: InputFile
    let fromLine: Int?
    /// Whether to begin at the start although an earlier run stored some of the file.
    let again: Bool

    let start = ContinuousClock.now
    var progress = ImportProgress()
    var line = ProgressNote()
    var badLines = BadLines()
    var waitingBefore: [WaitingReceipts] = []
    var lastForecast = 0.0

    var elapsedSeconds: Double { (ContinuousClock.now - start) / .seconds(1) }

    mutating func run() async throws {
        let handle = try input.open()
        // Once, and first: what is added from now on makes another file.
        progress.bytesTotal = input.byteCount
        let ongoing = try await open(handle)
        let reader = try reader(of: handle, ongoing)
        waitingBefore = try await tracker.ledger.intake.waiting()
        tell(waitingBefore)
        do {
            defer { line.clear() }
            try await Importer(tracker: tracker, ongoing: ongoing, fromLine: fromLine)
                .run(reader) { try await take($0) }
        } catch let error as DatabaseError {
            throw Failure(stopped(by: error, isResumable: ongoing != nil && fromLine == nil))
        }
        printLine(progress.summary(elapsedSeconds: elapsedSeconds))
        tellEnd(of: ongoing)
        tell(try await tracker.ledger.intake.waiting())
        if let ongoing, fromLine == nil, let skipped = progress.skipped(of: input.name, since: ongoing.startedAt) {
            printLine(skipped)
        }
        if progress.stored == 0, progress.bad > 0, progress.skipped == 0 {
            throw Failure("No line of \(input.name) could be stored; the lines above say why.")
        }
    }

    /// Opens the import in the ledger; nil for input that cannot be read from the middle.
    private func open(_ handle: FileHandle) async throws -> Import? {
        guard let file = try input.identity(handle) else { return nil }
        return try await tracker.ledger.intake.openImport(of: file, again: again)
    }

    private mutating func reader(of handle: FileHandle, _ ongoing: Import?) throws -> BlockReader {
        progress.linesBefore = (fromLine ?? 1) - 1
        progress.line = progress.linesBefore
        guard let ongoing, fromLine == nil, ongoing.nextLine > 1 else {
            return try BlockReader(handle, name: input.name, byteCount: progress.bytesTotal)
        }
        progress.line = Int(ongoing.nextLine) - 1
        progress.linesBefore = progress.line
        progress.bytesDone = Int(ongoing.nextByte)
        progress.bytesBefore = progress.bytesDone
        if progress.bytesDone != progress.bytesTotal {
            printError("Going on with \(input.name) after line \(progress.line); --again reads it from the start.")
        }
        return try BlockReader(
            handle, name: input.name, byteCount: progress.bytesTotal, from: progress.bytesDone, line: progress.line + 1)
    }

    private mutating func take(_ block: StoredBlock) async throws {
        progress.add(block)
        for bad in block.bad {
            if let sentence = badLines.sentence(for: bad) { line.printLine(sentence) }
        }
        let (progress, seconds) = (progress, elapsedSeconds)
        line.show(progress.bar(elapsedSeconds: seconds), elsewhere: progress.note(elapsedSeconds: seconds))
        guard seconds - lastForecast >= Importer.forecastSeconds else { return }
        lastForecast = seconds
        tell(try await tracker.ledger.intake.waiting())
    }

    private func tell(_ waiting: [WaitingReceipts]) {
        var forecast = CheckForecast()
        if elapsedSeconds > 0, progress.line > 0 {
            forecast.earlier = (waitingBefore, elapsedSeconds)
            forecast.storedSince = progress.new
        }
        for sentence in forecast.sentences(for: waiting) { line.printLine(sentence) }
    }

    private func tellEnd(of ongoing: Import?) {
        if progress.cutShort > 0 {
            printLine(
                "\(progress.cutShort.of("line promises", "lines promise")) access for more than \(Provisional.daysMax) days; it ends after "
                    + "\(Provisional.daysMax).")
        }
        guard ongoing != nil, fromLine == nil, progress.bad > 0 else { return }
        printLine(
            "\(progress.bad.of("line", "lines")) of \(input.name) \(progress.bad == 1 ? "was" : "were") bad; an import of the same "
                + "file reads \(progress.bad == 1 ? "it" : "them") again, one of a changed file reads every line.")
    }

    private func stopped(by error: DatabaseError, isResumable: Bool) -> String {
        let stored = "The import stopped after line \(progress.line): \(error.message)"
        return isResumable
            ? "\(stored) Run it again later; it goes on there."
            : "\(stored) Run it again later, with --from-line \(progress.line + 1) to spare time."
    }
}

/// A writer of the receipts in a file of lines. It reads one block while it parses and stores others. Storing is
/// idempotent, so an import can always be run again.
struct Importer: Sendable {
    /// The most blocks parsed or stored at once; with the one being read they bound the memory.
    static let blocksMax = 4
    /// The most tries of a block while the database fails.
    static let triesMax = 5
    /// The interval between forecasts, in seconds: counting the waiting receipts reads an index.
    static let forecastSeconds = 120.0

    let tracker: Tracker
    /// The import in the ledger, where the file can be read from the middle; nil for standard input and pipes.
    let ongoing: Import?
    /// The first line to store, whatever earlier runs stored; nil for the lines that they did not store.
    let fromLine: Int?
    var limits = LineLimits()

    /// Stores every line and reports each block to `progress` in the order of the file. Throws when the file cannot be
    /// read or the database stays unreachable.
    func run(_ reader: BlockReader, progress: (StoredBlock) async throws -> Void) async throws {
        var reader = reader
        try await withThrowingTaskGroup(of: (place: Int, block: StoredBlock).self) { tasks in
            var begun = 0
            var line = BlocksInOrder()
            while let block = try await reader.next() {
                if begun - line.ended >= Self.blocksMax, let ended = try await tasks.next() {
                    for block in line.end(ended.block, at: ended.place) { try await progress(block) }
                }
                let place = begun
                begun += 1
                tasks.addTask { (place, try await store(block)) }
            }
            for try await ended in tasks {
                for block in line.end(ended.block, at: ended.place) { try await progress(block) }
            }
        }
    }

    private func store(_ block: LineBlock) async throws -> StoredBlock {
        var stored = StoredBlock(
            reading: block, fromLine: fromLine ?? 1, without: fromLine == nil ? ongoing?.stored ?? [] : [],
            lineBytesMax: limits.lineBytesMax)
        let (submissions, part) = (stored.waiting.map(\.submission), part(stored))
        // A short failure of the database may pass; nothing is stored twice.
        let results = try await repeating { error, tries in
            (error as? DatabaseError)?.mayPass == true && tries < Self.triesMax
        } pausing: { _, tries in
            try await Task.sleep(for: .seconds(tries))
        } _: {
            try await tracker.store(submissions, completing: part)
        }
        stored.count(results)
        return stored
    }

    /// Returns the part of the file that is then done; nil when lines were skipped, because they may not be stored.
    private func part(_ block: StoredBlock) -> ImportedPart? {
        guard let ongoing, fromLine ?? 1 <= block.numbers.lowerBound else { return nil }
        return ImportedPart(
            of: ongoing, lines: Int64(block.numbers.lowerBound)..<Int64(block.numbers.upperBound),
            bytes: Int64(block.offsets.lowerBound)..<Int64(block.offsets.upperBound),
            submitted: block.waiting.map { Int64($0.number) }, badLines: block.bad.map { Int64($0.number) })
    }
}

/// Blocks that end in any order and are reported in the order of the file.
private struct BlocksInOrder {
    private var early: [Int: StoredBlock] = [:]
    private var returned = 0
    private(set) var ended = 0

    /// Records the end of a block, and returns the blocks whose turn it is now.
    mutating func end(_ block: StoredBlock, at place: Int) -> [StoredBlock] {
        ended += 1
        early[place] = block
        var next: [StoredBlock] = []
        while let block = early.removeValue(forKey: returned) {
            next.append(block)
            returned += 1
        }
        return next
    }
}

extension DatabaseError {
    fileprivate var mayPass: Bool {
        switch disposition {
        case .retry: true
        case .reject, .alarm: kind == .commitUnknown
        }
    }
}

/// An estimate, as far as one is possible, of when Apple has been asked about everything that waits for a first answer.
struct CheckForecast {
    /// The receipts that waited at an earlier count, and the seconds since then. They show how fast an app without a
    /// limit is checked.
    var earlier: (waiting: [WaitingReceipts], seconds: Double)?
    /// The number of receipts stored since that count, by all apps together.
    var storedSince = 0

    /// Returns one sentence for each app with waiting receipts.
    func sentences(for waiting: [WaitingReceipts]) -> [String] {
        waiting.filter { $0.receipts > 0 }.map { app in
            "\(app.bundleID): \(app.receipts.of("receipt waits", "receipts wait")) for Apple's first answer; \(when(app, among: waiting))."
        }
    }

    private func when(_ app: WaitingReceipts, among waiting: [WaitingReceipts]) -> String {
        guard app.hasWorker else {
            let time = seconds(app).map { ": all in about \(Duration.seconds($0).inWords)" } ?? ""
            return "no worker is running; once `perennial worker` does, they are asked about\(time)"
        }
        if let seconds = seconds(app) {
            return "at \(rate(app.callsPerSecond)) calls a second all are asked about in about "
                + Duration.seconds(seconds).inWords
        }
        guard let measured = measured(app, among: waiting) else {
            return "the app has no limit of calls, and how fast Apple answers is not known yet"
        }
        return "at the \(rate(measured)) a second seen during this import all are asked about in about "
            + Duration.seconds(Double(app.receipts) / measured).inWords
    }

    private func seconds(_ app: WaitingReceipts) -> Double? {
        app.callsPerSecond > 0 ? Double(app.receipts) / app.callsPerSecond : nil
    }

    /// Returns the answers per second since the earlier look; nil when there was none, or other apps distort the count.
    private func measured(_ app: WaitingReceipts, among waiting: [WaitingReceipts]) -> Double? {
        guard let earlier, earlier.seconds >= 1, waiting.count(where: { $0.receipts > 0 }) == 1,
            let before = earlier.waiting.first(where: { $0.bundleID == app.bundleID })
        else { return nil }
        let answered = before.receipts + Int64(storedSince) - app.receipts
        return answered > 0 ? Double(answered) / earlier.seconds : nil
    }

    private func rate(_ callsPerSecond: Double) -> String {
        let tenths = (callsPerSecond * 10).rounded() / 10
        return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
    }
}
