import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The StoreKit of the probe: the simulator takes the payments, and files remember which transactions are finished.
struct Store {
    /// Where the simulator is.
    let simulator: URL
    /// The simulator's name of the customer.
    let customer: String
    /// Where the device keeps its receipt and the finished transactions.
    let folder: URL

    private struct Truth: Decodable {
        struct Purchase: Decodable {
            let transaction_id: String
        }
        let purchases: [Purchase]
    }

    /// The transaction of the purchase with this number, from 0; buys it where it is not bought yet. Each is of another
    /// quantity: two equal purchases in one second look like one that is listed twice.
    func transaction(_ number: Int, _ token: String?, _ steps: Steps) async throws -> String {
        var truth = try await truth("truth/\(customer)")
        if truth.purchases.count == number {
            steps.reach("before the payment")
            let carried = token.map { ",\"app_account_token\":\"\($0)\"" } ?? ""
            truth = try await self.truth(
                "customers/\(customer)/actions",
                #"{"action":"buy","item":"coins","quantity":\#(number + 1)\#(carried)}"#)
            steps.reach("after the payment")
        }
        return truth.purchases[number].transaction_id
    }

    /// The receipt on the device after that purchase, the same one each time.
    func receipt(_ number: Int) async throws -> Data {
        let file = folder.appending(path: "receipt-\(number)")
        if let kept = try? Data(contentsOf: file) { return kept }
        struct Held: Decodable { let receipt: String }
        let held = try JSONDecoder().decode(Held.self, from: try await send("receipts/\(customer)"))
        guard let bytes = Data(base64Encoded: held.receipt) else { throw URLError(.cannotDecodeRawData) }
        try bytes.write(to: file, options: .atomic)
        return bytes
    }

    /// Whether a transaction is finished.
    func isFinished(_ transaction: String) -> Bool {
        FileManager.default.fileExists(atPath: finished(transaction).path)
    }

    /// Finishes a transaction; StoreKit does not mind a second time.
    func finish(_ transaction: String) throws { try Data().write(to: finished(transaction), options: .atomic) }

    private func finished(_ transaction: String) -> URL { folder.appending(path: "finished-\(transaction)") }

    private func truth(_ path: String, _ body: String? = nil) async throws -> Truth {
        try JSONDecoder().decode(Truth.self, from: try await send(path, body))
    }

    private func send(_ path: String, _ body: String? = nil) async throws -> Data {
        var request = URLRequest(url: simulator.appending(path: "simulator/\(path)"))
        request.httpMethod = body == nil ? "GET" : "POST"
        request.httpBody = body.map { Data($0.utf8) }
        let (answer, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return answer
    }
}
