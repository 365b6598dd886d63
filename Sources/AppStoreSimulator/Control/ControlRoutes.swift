import Foundation

/// The control API under `/simulator/`: JSON in, JSON out.
extension Simulator {
    func control(_ request: SimulatorRequest, path: [String], query: [URLQueryItem]) -> SimulatorReply {
        do {
            switch (request.method, path.first ?? "", path.count) {
            case ("GET", "healthz", 1): return try .json(["status": "ok"])
            case ("GET", "receipts", 1): return try receiptList(query)
            case ("GET", "truth", 1): return try truthDocument(query)
            case ("GET", "truth", 2):
                guard let found = truth(of: path[1]) else { return .refused(404, "there is no such customer") }
                return try .json(found)
            case ("POST", "customers", 1):
                let wanted = try JSONDecoder().decode(CustomerRequest.self, from: Data(request.body))
                return try .json(createCustomer(wanted.script, environment: wanted.environment), code: 201)
            case ("POST", "customers", 3) where path[2] == "actions":
                return try act(request.body, on: path[1])
            case ("POST", "faults", 1): return try addFault(request.body)
            case ("DELETE", "faults", 1):
                clearFaults()
                return try .json(["faults": 0])
            case ("POST", "secret", 1):
                rotateSecret(to: try JSONDecoder().decode(SecretRequest.self, from: Data(request.body)).secret)
                return try .json(["secret": sharedSecret])
            default: return .refused(404, "there is no such route")
            }
        } catch let refused as ActionRefused {
            return .refused(409, refused.description)
        } catch {
            return .refused(400, "\(error)")
        }
    }

    private func act(_ body: [UInt8], on customer: String) throws -> SimulatorReply {
        let action = try JSONDecoder().decode(CustomerAction.self, from: Data(body))
        guard try act(action, on: customer), let found = truth(of: customer) else {
            return .refused(404, "there is no such customer")
        }
        return try .json(found)
    }

    private func addFault(_ body: [UInt8]) throws -> SimulatorReply {
        let fault = try JSONDecoder().decode(Fault.self, from: Data(body))
        guard (0...1).contains(fault.share) else { return .refused(400, "share is between 0 and 1") }
        add(fault)
        return try .json(["faults": world.withLock { $0.faultPlan.faults.count }])
    }

    private func receiptList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let found = receipts(from: query.number("from") ?? 0, count: query.number("count") ?? .max)
        guard query.first(where: { $0.name == "format" })?.value == "ndjson" else { return try .json(found) }
        let lines = try found.map { customer in
            try JSONEncoder.control.encode(
                ReceiptLine(app: customer.app, customer: customer.customer, receipt: customer.receipt))
        }
        let body = lines.flatMap { Array($0) + [UInt8(ascii: "\n")] }
        return SimulatorReply(headers: [("Content-Type", "application/x-ndjson")], body: body)
    }

    private func truthDocument(_ query: [URLQueryItem]) throws -> SimulatorReply {
        try .json(
            TruthDocument(
                seed: String(options.seed), epoch: epochMilliseconds, now: clock.now.milliseconds,
                month: options.monthSeconds,
                customers: truth(from: query.number("from") ?? 0, count: query.number("count") ?? .max)))
    }
}

/// One line of `GET /simulator/receipts?format=ndjson`.
private struct ReceiptLine: Encodable {
    let app: String
    let customer: String
    let receipt: String
}

/// The body of `GET /simulator/truth`. The seed is text: it has 64 bits.
private struct TruthDocument: Encodable {
    let seed: String
    let epoch: Int64
    let now: Int64
    let month: Double
    let customers: [CustomerTruth]

    enum CodingKeys: String, CodingKey {
        case seed, customers
        case epoch = "epoch_ms"
        case now = "now_ms"
        case month = "month_seconds"
    }
}

extension [URLQueryItem] {
    fileprivate func number(_ name: String) -> Int? {
        first { $0.name == name }?.value.flatMap { Int($0) }
    }
}

extension JSONEncoder {
    /// Keys in order, so that equal truths are equal bytes; Base64 without escaped slashes.
    fileprivate static var control: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

extension SimulatorReply {
    fileprivate static func json(_ value: some Encodable, code: Int = 200) throws -> SimulatorReply {
        SimulatorReply(
            code: code, headers: [("Content-Type", "application/json")],
            body: Array(try JSONEncoder.control.encode(value)))
    }

    fileprivate static func refused(_ code: Int, _ reason: String) -> SimulatorReply {
        var json = JSONWriter(reserving: 128)
        json.object { $0.text("error", reason) }
        return SimulatorReply(code: code, headers: [("Content-Type", "application/json")], body: json.bytes)
    }
}
