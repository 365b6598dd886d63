import Foundation

/// The control API under `/simulator/`: JSON in, JSON out.
extension Simulator {
    func control(_ request: SimulatorRequest, path: [String], query: [URLQueryItem]) -> SimulatorReply {
        if let app = query.first(where: { $0.name == "app" })?.value, app != options.bundleID {
            return neighbour?.control(request, path: path, query: query)
                ?? .refused(404, "this address does not sell the app \(app)")
        }
        do {
            switch (request.method, path.first ?? "", path.count) {
            case ("GET", "healthz", 1): return try .json(["status": "ok"])
            case ("GET", "signing-root", 1): return try signingRoot()
            case ("GET", "signed-transactions", 1): return try signedTransactionList(query)
            case ("GET", "signed-uploads", 1): return try signedUploadList(query)
            case ("GET", "signed-transactions", 2): return try signedTransactionList(of: path[1])
            case ("GET", "receipts", 1): return try receiptList(query)
            case ("GET", "receipts", 2): return try heldReceipt(of: path[1], query)
            case ("GET", "truth", 1): return try truthDocument(query)
            case ("GET", "uploads", 1): return try uploadList(query)
            case ("GET", "truth", 2):
                guard let found = truth(of: path[1], at: try query.instant("at")) else {
                    return .refused(404, "there is no such customer")
                }
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
            case ("POST", "lag", 1): return try addLag(request.body)
            case ("DELETE", "lag", 1):
                clearLags()
                return try .json(["lags": 0])
            case ("POST", "offer-keys", 1): return try register(request.body, in: offerKeys)
            case ("POST", "server-keys", 1): return try register(request.body, in: serverKeys)
            case ("POST", "notifications", 1): return try startNotifications(request.body)
            case ("GET", "notifications", 1): return try notificationList(query)
            case ("DELETE", "notifications", 1): return try stopNotifications()
            case ("POST", "rates", 1): return try setRate(request.body)
            case ("DELETE", "rates", 1): return try clearRates()
            case ("GET", "consumption", 1): return try .json(support.consumptions)
            case ("POST", "offer-signatures", 1): return try judgeOfferSignature(request.body)
            case ("POST", "secret", 1):
                rotateSecret(to: try JSONDecoder().decode(SecretRequest.self, from: Data(request.body)).secret)
                return try .json(["secret": sharedSecret])
            case ("POST", "certificate", 1): return try show(request.body)
            default: return .refused(404, "there is no such route")
            }
        } catch let refused as ActionRefused {
            return .refused(409, refused.description)
        } catch let unreadable as DecodingError {
            return .refused(400, unreadable.sentence)
        } catch {
            return .refused(400, "\(error)")
        }
    }

    private func act(_ body: [UInt8], on customer: String) throws -> SimulatorReply {
        let action = try JSONDecoder().decode(CustomerAction.self, from: Data(body))
        guard let answer = try perform(action, on: customer) else {
            return .refused(404, "there is no such customer")
        }
        return try .json(answer)
    }

    private func show(_ body: [UInt8]) throws -> SimulatorReply {
        guard let identity else { return .refused(409, "this store speaks plain HTTP; start it with --tls") }
        identity.show(try JSONDecoder().decode(CertificateRequest.self, from: Data(body)).certificate)
        return try .json(["certificate": identity.certificate])
    }

    private func addFault(_ body: [UInt8]) throws -> SimulatorReply {
        let fault = try JSONDecoder().decode(Fault.self, from: Data(body))
        guard (0...1).contains(fault.share) else { return .refused(400, "share is between 0 and 1") }
        guard fault.seconds.map((0...Fault.secondsMax).contains) ?? true else {
            return .refused(400, "seconds are between 0 and \(Int(Fault.secondsMax))")
        }
        guard fault.code.map((400...599).contains) ?? true else { return .refused(400, "code is 400 to 599") }
        guard fault.channel == .serverAPI || ![.forged, .foreign].contains(fault.kind) else {
            return .refused(400, "only the Server API has signed texts")
        }
        add(fault)
        return try .json(["faults": conditions.faults.count + serverConditions.faults.count])
    }

    private func addLag(_ body: [UInt8]) throws -> SimulatorReply {
        let lag = try JSONDecoder().decode(Lag.self, from: Data(body))
        guard (0...Lag.secondsMax).contains(lag.seconds) else {
            return .refused(400, "seconds are between 0 and \(Int(Lag.secondsMax))")
        }
        guard (0...1).contains(lag.share ?? 1) else { return .refused(400, "share is between 0 and 1") }
        if let customer = lag.customer, truth(of: customer) == nil {
            return .refused(404, "there is no such customer")
        }
        add(lag)
        return try .json(["lags": lags.count + serverLags.count])
    }

    private func receiptList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let found = receipts(from: query.number("from") ?? 0, count: query.number("count") ?? .max)
        guard query.wantsLines else { return try .json(found) }
        return .lines("receipt", found.map { (app: $0.app, customer: $0.customer, text: $0.receipt) })
    }

    private func heldReceipt(of customer: String, _ query: [URLQueryItem]) throws -> SimulatorReply {
        let kind = query.first { $0.name == "kind" }?.value ?? DeviceReceipt.dated.rawValue
        guard let kind = DeviceReceipt(rawValue: kind) else {
            return .refused(400, "kind is one of \(DeviceReceipt.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let writtenAt = try query.instant("at") ?? now.milliseconds
        let restore = query.number("restore") ?? Seat(of: customer).ownRestore
        let restoresMax = SubscriptionIDs.restoresMax
        guard (0...restoresMax).contains(restore) else { return .refused(400, "restore is 0 to \(restoresMax)") }
        guard let receipt = receipt(of: customer, writtenAt: writtenAt, restore: restore, kind) else {
            return .refused(404, "there is no such customer")
        }
        return try .json(["app": options.bundleID, "customer": customer, "receipt": receipt])
    }

    private func uploadList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let found = uploads(since: try query.instant("since") ?? .min, until: try query.instant("until"))
        guard query.wantsLines else { return try .json(UploadDocument(now: now.milliseconds, uploads: found)) }
        return .lines("receipt", found.map { (app: $0.app, customer: $0.customer, text: $0.receipt) })
    }

    private func truthDocument(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let at = try query.instant("at")
        return try .json(
            TruthDocument(
                seed: String(options.seed), epoch: epochMilliseconds, now: at ?? now.milliseconds,
                month: options.monthSeconds,
                customers: truth(at: at, from: query.number("from") ?? 0, count: query.number("count") ?? .max)))
    }
}

/// The body of `GET /simulator/uploads`; the caller passes `now_ms` as the start of its next request.
private struct UploadDocument: Encodable {
    let now: Int64
    let uploads: [SimulatedUpload]

    enum CodingKeys: String, CodingKey {
        case uploads
        case now = "now_ms"
    }
}

/// The body of `GET /simulator/truth`. The seed is a string because it has 64 bits.
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
    func number(_ name: String) -> Int? {
        first { $0.name == name }?.value.flatMap { Int($0) }
    }

    /// Returns an instant given as milliseconds since 1970 or as RFC 3339 text.
    func instant(_ name: String) throws -> Int64? {
        guard let text = first(where: { $0.name == name })?.value else { return nil }
        return try Int64(text) ?? Int64(Date(text, strategy: .iso8601).timeIntervalSince1970 * 1000)
    }

    var wantsLines: Bool { contains { $0.name == "format" && $0.value == "ndjson" } }
}

extension JSONEncoder {
    /// An encoder that sorts keys, so that equal truths are equal bytes, and does not escape the slashes of Base64.
    fileprivate static var control: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

extension DecodingError {
    /// The reason as Foundation states it, with the name of the field.
    fileprivate var sentence: String {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            let field = context.codingPath.map(\.stringValue).joined(separator: ".")
            return field.isEmpty ? context.debugDescription : "\(field): \(context.debugDescription)"
        @unknown default: return "\(self)"
        }
    }
}

extension SimulatorReply {
    static func json(_ value: some Encodable, code: Int = 200) throws -> SimulatorReply {
        SimulatorReply(
            code: code, headers: [("Content-Type", "application/json")],
            body: Array(try JSONEncoder.control.encode(value)))
    }

    /// Returns the lines that `perennial import` reads. Their texts need no escapes.
    static func lines(
        _ subject: StaticString, _ lines: [(app: String, customer: String, text: String)]
    ) -> SimulatorReply {
        var body: [UInt8] = []
        for line in lines {
            var json = JSONWriter(reserving: line.text.utf8.count + 128)
            json.object { json in
                json.text("app", line.app)
                json.text("customer", line.customer)
                json.text(subject, line.text)
            }
            body += json.bytes + [UInt8(ascii: "\n")]
        }
        return SimulatorReply(headers: [("Content-Type", "application/x-ndjson")], body: body)
    }

    static func refused(_ code: Int, _ reason: String) -> SimulatorReply {
        var json = JSONWriter(reserving: 128)
        json.object { $0.text("error", reason) }
        return SimulatorReply(code: code, headers: [("Content-Type", "application/json")], body: json.bytes)
    }
}
