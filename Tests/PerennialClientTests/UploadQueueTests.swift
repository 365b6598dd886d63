import Foundation
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import PerennialClient

@Suite("Uploads wait in a queue until the server has answered and the app has taken the answer")
struct UploadQueueTests {
    let store = ScriptedServer()
    let launch = Upload(receipt: "AQ==", customer: "kim")

    private var limits: UploadLimits {
        var limits = UploadLimits()
        limits.retrySecondsMin = 0.001
        limits.retrySecondsMax = 0.02
        return limits
    }

    private func queue(_ storage: UploadStorage, limits: UploadLimits? = nil) async throws -> UploadQueue {
        try await UploadQueue(store.server(), storage: storage, limits: limits ?? self.limits)
    }

    /// Runs a queue until it is empty; answers what was reported, in order.
    private func reports(
        of queue: UploadQueue, _ handler: @escaping @Sendable (Upload, UploadReport) async throws -> Void = { _, _ in }
    ) async throws -> [String] {
        let said = Said()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await queue.run { upload, report in
                    said.add(report.word)
                    try await handler(upload, report)
                }
            }
            while await queue.count > 0 { try await Task.sleep(for: .milliseconds(1)) }
            group.cancelAll()
        }
        return said.words
    }

    @Test("It tries again by the server's advice, and forgets an upload after the answer was taken")
    func patience() async throws {
        try await withFolder { folder in
            let queue = try await queue(.folder(folder))
            store.say(
                nil, .problem(429, "too-many", retryAfter: "60"), .problem(401, "unauthenticated"),
                ScriptedServer.Answer(status: 404, body: "a proxy"), .problem(404, "not-found"),
                .upload("pending", status: 202, advice: "retry", after: 5),
                .upload("failed", status: 202, advice: "retry"),
                .upload(finish: ["7"]))
            try await queue.add(launch)
            let said = try await reports(of: queue)
            #expect(
                said == [
                    "failing retry(afterSeconds: nil)", "failing retry(afterSeconds: Optional(60.0))", "failing alarm",
                    "failing alarm", "failing reject", "pending pending", "pending failed", "answered succeeded",
                ])
            #expect(try await UploadStorage.folder(folder).load().isEmpty)
        }
    }

    @Test("A final refusal is handed over once, and an absent purchase with its advice")
    func refusals() async throws {
        for (answer, word) in [
            (ScriptedServer.Answer.problem(422, "not-a-receipt"), "refused reject"),
            (.problem(403, "proof-refused"), "refused reject"), (.problem(413, "too-large"), "refused reject"),
            (.upload("absent", status: 202, advice: "refresh_receipt"), "answered absent"),
            (.upload("failed"), "answered failed"), (.upload("of a newer server"), "answered of a newer server"),
        ] {
            try await withFolder { folder in
                store.say(answer)
                let queue = try await queue(.folder(folder))
                try await queue.add(launch)
                #expect(try await reports(of: queue) == [word])
            }
        }
    }

    @Test("An order that the customer has not is final, a route that the server has not is not")
    func notFound() throws {
        let table: [(Upload, Bool)] = [
            (Upload(receipt: "AQ==", customer: "kim", purpose: .purchase, order: "0c1d"), true),
            (Upload(receipt: "AQ==", customer: "kim", purpose: .purchase, transactionID: "7"), false),
            (try Upload(receipt: Data([1]), of: PlacedOrder.sample()), false),
        ]
        let reply = try #require(
            HTTPURLResponse(url: URL(filePath: "/"), statusCode: 404, httpVersion: nil, headerFields: nil))
        let body = ScriptedServer.Answer.problem(404, "not-found").body
        let error = Reply(body: Data(body.utf8), response: reply).failure
        for (upload, isFinal) in table {
            #expect(UploadReport(.failure(error), to: upload) { _ in 1 }.isFinal == isFinal, "\(upload)")
        }
    }

    @Test("Equal uploads are one entry, in the folder too; others are not")
    func equal() async throws {
        try await withFolder { folder in
            let first = try await queue(.folder(folder))
            let order = try PlacedOrder.sample()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { try await first.add(launch) } }
                try await group.waitForAll()
            }
            for _ in 0..<2 { try await first.add(Upload(receipt: Data([1]), of: order)) }
            try await first.add(Upload(receipt: Data([1]), of: try PlacedOrder.sample(id: "other")))
            try await first.add(Upload(receipt: "AQ==", customer: "bob"))
            try await first.add(Upload(receipt: "AQ==", customer: "kim", purpose: .purchase, order: "0c1d"))
            for subject in [Upload.Subject.signedTransaction("AQ=="), .transactionID("AQ=="), .transactionID("AQ==")] {
                try await first.add(Upload(subject, customer: "kim"))
            }
            #expect(await first.count == 7)
            let again = try await queue(.folder(folder))
            #expect(await again.uploads == first.uploads && again.unreadable.isEmpty)
            let file = try String(
                contentsOf: folder.appending(path: try Upload(receipt: Data([1]), of: order).id + ".upload"),
                encoding: .utf8)
            #expect(!file.contains(order.key))
            try await again.discard(launch)
            #expect(try await queue(.folder(folder)).count == 6)
        }
    }

    @Test("The order of uploads that were added in one millisecond survives a restart")
    func order() async throws {
        try await withFolder { folder in
            let first = try await queue(.folder(folder))
            for number in 0..<50 { try await first.add(Upload(receipt: "AQ==", customer: "kim \(number)")) }
            let again = try await queue(.folder(folder))
            #expect(await again.uploads.map(\.customer) == (0..<50).map { "kim \($0)" })
        }
    }

    @Test("A handler that throws gets the report again; one that adds an equal upload gets a newer answer")
    func again() async throws {
        try await withFolder { folder in
            let queue = try await queue(.folder(folder))
            store.say(.upload("absent", status: 202, advice: "refresh_receipt"), .upload("absent"), .upload())
            try await queue.add(launch)
            let calls = Mutex(0)
            let said = try await reports(of: queue) { upload, _ in
                let call = calls.withLock { count in
                    count += 1
                    return count
                }
                if call == 1 { throw URLError(.cancelled) }
                if call == 2 { try await queue.add(upload) }
            }
            #expect(said == ["answered absent", "answered absent", "answered succeeded"])
        }
    }

    @Test("What the handler has not taken when the run is cancelled is there for the next run")
    func cancelled() async throws {
        try await withFolder { folder in
            let queue = try await queue(.folder(folder))
            store.say(.upload())
            try await queue.add(launch)
            await withThrowingTaskGroup(of: Void.self) { group in
                let (calls, called) = AsyncStream.makeStream(of: Void.self)
                group.addTask {
                    try await queue.run { _, _ in
                        called.yield()
                        try await Task.sleep(for: .seconds(60))
                    }
                }
                for await _ in calls { break }
                group.cancelAll()
            }
            #expect(await queue.count == 1)
            #expect(try await self.queue(.folder(folder)).count == 1)
            #expect(try await reports(of: queue) == ["answered succeeded"])
        }
    }

    @Test("A run takes what is added meanwhile, and a long wait ends by a call")
    func meanwhile() async throws {
        try await withFolder { folder in
            var patient = UploadLimits()
            patient.retrySecondsMin = 0
            let queue = try await queue(.folder(folder), limits: patient)
            store.say(.problem(503, "unavailable", retryAfter: "3000"), .upload())
            try await withThrowingTaskGroup(of: Void.self) { group in
                let (calls, called) = AsyncStream.makeStream(of: String.self)
                group.addTask { try await queue.run { _, report in called.yield(report.word) } }
                try await queue.add(launch)
                var said: [String] = []
                for await word in calls {
                    said.append(word)
                    if said.count == 1 { try await queue.add(Upload(receipt: "AQ==", customer: "bob")) }
                    if said.count == 2 { await queue.retryNow() }
                    if said.count == 3 { break }
                }
                #expect(said[1...] == ["answered succeeded", "answered succeeded"])
                let second = await #expect(throws: PerennialError.self) { try await queue.run { _, _ in } }
                #expect(second?.cause == .invalid)
                group.cancelAll()
            }
        }
    }

    @Test("The queue is bounded, and takes nothing that no server takes")
    func bounds() async throws {
        try await withFolder { folder in
            var small = limits
            (small.entriesMax, small.receiptBytesMax, small.totalBytesMax) = (3, 10, 18)
            let queue = try await queue(.folder(folder), limits: small)
            func cause(_ upload: Upload) async -> PerennialError.Cause? {
                await #expect(throws: PerennialError.self) { try await queue.add(upload) }?.cause
            }
            #expect(await cause(Upload(receipt: "01234567890", customer: "kim")) == .invalid)
            #expect(await cause(Upload(receipt: "", customer: "kim")) == .invalid)
            #expect(await cause(Upload(receipt: "AQ==", customer: "")) == .invalid)
            #expect(await cause(Upload(receipt: "AQ==", customer: "kim", purpose: .purchase)) == .invalid)
            try await queue.add(Upload(receipt: "0123456789", customer: "kim"))
            #expect(await cause(Upload(receipt: "0123456789", customer: "bob")) == .full)
            try await queue.add(Upload(receipt: "AQ==", customer: "bob"))
            try await queue.add(Upload(receipt: "AQ==", customer: "eve"))
            #expect(await cause(Upload(receipt: "AQ==", customer: "zoe")) == .full)
            #expect(await queue.count == 3)
        }
    }

    @Test("A storage that fails keeps the upload and is reported")
    func storageFails() async throws {
        try await withFolder { folder in
            let isBroken = Mutex(true)
            var storage = UploadStorage.folder(folder)
            let (save, remove) = (storage.save, storage.remove)
            @Sendable func requireWhole() throws {
                if isBroken.withLock({ $0 }) { throw CocoaError(.fileWriteOutOfSpace) }
            }
            storage.save = { entry in
                try requireWhole()
                try await save(entry)
            }
            storage.remove = { id in
                try requireWhole()
                try await remove(id)
            }
            let queue = try await queue(storage)
            let error = await #expect(throws: PerennialError.self) { try await queue.add(launch) }
            #expect(error?.cause == .storage && error?.disposition == .alarm)
            #expect(await queue.count == 0)
            isBroken.withLock { $0 = false }
            try await queue.add(launch)
            isBroken.withLock { $0 = true }
            store.say(.upload())
            let said = try await reports(of: queue) { _, report in
                if case .failing = report { isBroken.withLock { $0 = false } }
            }
            #expect(said == ["answered succeeded", "failing alarm", "answered succeeded"])
        }
    }

    @Test("An upload is not sent again while the handler learns that the storage failed")
    func storageFailsSlowly() async throws {
        try await withFolder { folder in
            let isBroken = Mutex(true)
            let handled = Mutex(0)
            var storage = UploadStorage.folder(folder)
            let remove = storage.remove
            storage.remove = { id in
                if isBroken.withLock({ $0 }) { throw CocoaError(.fileWriteOutOfSpace) }
                try await remove(id)
            }
            let queue = try await queue(storage)
            try await queue.add(launch)
            store.say(.upload(), .upload())
            let said = try await reports(of: queue) { _, report in
                let others = handled.withLock { count in
                    count += 1
                    return count - 1
                }
                #expect(others == 0, "another report came during this one")
                if case .failing = report {
                    await queue.retryNow()
                    try await Task.sleep(for: .milliseconds(50))
                    isBroken.withLock { $0 = false }
                }
                handled.withLock { $0 -= 1 }
            }
            #expect(said == ["answered succeeded", "failing alarm", "answered succeeded"])
        }
    }
}

/// What was said, in order.
private final class Said: Sendable {
    private let list = Mutex<[String]>([])
    var words: [String] { list.withLock { $0 } }
    func add(_ word: String) { list.withLock { $0.append(word) } }
}

extension UploadReport {
    /// What it says in a few words.
    fileprivate var word: String {
        switch self {
        case .answered(let answer): "answered \(answer.result.rawValue)"
        case .refused(let error): "refused \(error.disposition)"
        case .pending(let answer, _): "pending \(answer.result.rawValue)"
        case .failing(let error, _): "failing \(error.disposition)"
        }
    }
}
