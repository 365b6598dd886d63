import Foundation
import PerennialClient

/// The examples of `docs/client.md`, compiled and run. `GuideTests` compares them with the document.
enum GuideExamples {
    static func service(at address: URL, key: String) -> PerennialServer {
        let server = PerennialServer(at: address, app: "com.example.app", key: key)
        return server
    }

    static func mayUse(_ server: PerennialServer) async throws -> Bool {
        let cache = EntitlementCache(server, usableSeconds: 3_600)  // one for the whole service
        let kim = try await cache.entitlements(of: "kim")
        if let failure = kim.failure { print("answering from memory: \(failure)") }
        return kim.grants("pro")
    }

    static func batch(_ server: PerennialServer) async throws -> [String] {
        let answers = try await server.entitlements(ofEach: ["kim", "bob"])
        let entitled = answers.filter { $0.grants("pro") }.map(\.customer)
        return entitled
    }

    static func errors(_ server: PerennialServer, alarm: (String) -> Void) async throws -> Order? {
        do {
            return try await server.order("7c0d3a52-58ab-4d4c-8d0b-3a6d6c1b6c11")
        } catch let error as PerennialError {
            switch error.disposition {
            case .retry(let seconds): print("again in \(seconds ?? 1) s: \(error)")
            case .reject: print("no use in asking again: \(error)")
            case .alarm: alarm("a person has to look: \(error)")
            }
            return nil
        }
    }

    static func order(_ server: PerennialServer, keep: (NewOrder) async throws -> Void) async throws -> Data {
        let new = NewOrder(customer: "kim", productID: "com.example.app.coins", price: Price("0.99", "USD"))
        try await keep(new)  // in your database, before the call
        let order = try await server.place(new)  // again with the same value if this throws
        let forTheDevice = try JSONEncoder().encode(order)
        return forTheDevice
    }

    static func serviceQueue(
        _ server: PerennialServer, folder: URL, receipt: String, transaction: String,
        answer: @escaping @Sendable (String, [String]) async throws -> Void
    ) async throws {
        let queue = try await UploadQueue(server, storage: .folder(folder))
        let upload = Upload(receipt: receipt, customer: "kim", purpose: .purchase, transactionID: transaction)
        try await queue.add(upload)  // now it is on the disk
        try await queue.run { upload, report in
            switch report {
            case .answered(let said): try await answer(upload.customer ?? "", said.mayFinish)
            case .refused(let error): print("never: \(error)")
            case .pending(let said, let seconds): print("\(said.result.rawValue), again in \(seconds) s")
            case .failing(let error, let seconds): print("\(error), again in \(seconds) s")
            }
        }
    }

    static func transaction(_ server: PerennialServer, jwsRepresentation: String) async throws {
        let upload = Upload(.signedTransaction(jwsRepresentation), customer: "kim")
        let answer = try await server.send(upload)
        print(answer.vouching == .signed ? "Apple signed it" : "wait: \(answer.result.rawValue)")
    }

    static func device(
        at address: URL, placed: Data, folder: URL, receipt: Data,
        finish: @escaping @Sendable ([String]) async throws -> Void,
        refresh: @escaping @Sendable () async throws -> Data
    ) async throws {
        let server = PerennialServer(at: address, app: "com.example.app")
        let order = try JSONDecoder().decode(PlacedOrder.self, from: placed)
        _ = try await server.report(.purchasing, of: order)

        let queue = try await UploadQueue(server, storage: .folder(folder))
        try await queue.add(Upload(receipt: receipt, of: order))
        try await queue.run { _, report in
            switch report {
            case .answered(let answer):
                try await finish(answer.mayFinish + answer.mayFinishRestored)
                if answer.advice == .refreshReceipt {
                    try await queue.add(Upload(receipt: try await refresh(), of: order))
                }
            case .pending(let answer, _): try await finish(answer.mayFinish)
            case .refused(let error), .failing(let error, _): print(error)
            }
        }
    }
}
