import Foundation
import Synchronization

/// The control API under `/simulator/`: JSON in, JSON out.
extension Simulator {
    /// Answers a control call; one that names another app is handed to the neighbour.
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
            case ("GET", "signed-transactions", 2): return try .customer(try signedTransactions(of: path[1]))
            case ("GET", "receipts", 1): return try receiptList(query)
            case ("GET", "receipts", 2): return try heldReceipt(of: path[1], query)
            case ("GET", "truth", 1): return try truthDocument(query)
            case ("GET", "uploads", 1): return try uploadList(query)
            case ("GET", "truth", 2): return try .customer(truth(of: path[1], at: try truthInstant(query)))
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
            case ("GET", "consumption", 1): return try .json(support.withLock { $0.consumptions })
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
        return try .customer(try perform(action, on: customer))
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
        let statuses = fault.channel == .serverAPI ? 4_000_000...5_999_999 : 0...99_999
        guard fault.status.map(statuses.contains) ?? true else {
            return .refused(400, "status is \(statuses.lowerBound) to \(statuses.upperBound)")
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
        return try .json(["lags": conditions.lags.count + serverConditions.lags.count])
    }

    private func receiptList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let part = try part(query, at: now)
        let found = receipts(from: part.from, count: part.count)
        guard query.wantsLines else { return try .json(found) }
        return .lines("receipt", found.map { (app: $0.app, customer: $0.customer, text: $0.receipt) })
    }

    private func heldReceipt(of customer: String, _ query: [URLQueryItem]) throws -> SimulatorReply {
        let kind = query.first { $0.name == "kind" }?.value ?? DeviceReceipt.dated.rawValue
        guard let kind = DeviceReceipt(rawValue: kind) else {
            return .refused(400, "kind is one of \(DeviceReceipt.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        let writtenAt = try query.instant("at") ?? now.milliseconds
        let restore =
            try query.number("restore", in: 0...SubscriptionIDs.restoresMax) ?? Seat(of: customer).ownRestore
        let held = receipt(of: customer, writtenAt: writtenAt, restore: restore, kind)
        return try .customer(held.map { ["app": options.bundleID, "customer": customer, "receipt": $0] })
    }

    private func uploadList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let found = uploads(since: try query.instant("since") ?? .min, until: try query.instant("until"))
        guard query.wantsLines else { return try .json(UploadDocument(now: now.milliseconds, uploads: found)) }
        return .lines("receipt", found.map { (app: $0.app, customer: $0.customer, text: $0.receipt) })
    }

    private func truthDocument(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let at = try truthInstant(query)
        let part = try part(query, at: at.map { StoreTime(milliseconds: $0) } ?? now)
        return try .json(
            TruthDocument(
                seed: String(options.seed), epoch: epochMilliseconds, now: at ?? now.milliseconds,
                month: options.monthSeconds, customers: truth(at: at, from: part.from, count: part.count)))
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
    var wantsLines: Bool { contains { $0.name == "format" && $0.value == "ndjson" } }
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

/// The body of `POST /simulator/customers`: a named kind, or a custom script.
struct CustomerRequest: Decodable, Sendable {
    let script: CustomerScript
    let environment: StoreEnvironment

    enum CodingKeys: String, CodingKey {
        case kind, script, environment
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        script =
            try values.decodeIfPresent(CustomerScript.self, forKey: .script)
            ?? (values.decodeIfPresent(ScriptKind.self, forKey: .kind) ?? .loyal).script
        // Small letters are accepted too.
        let name = try values.decodeIfPresent(String.self, forKey: .environment) ?? "Production"
        guard let environment = StoreEnvironment(rawValue: name.capitalized) else {
            throw DecodingError.dataCorruptedError(
                forKey: .environment, in: values, debugDescription: "environment is Production or Sandbox")
        }
        self.environment = environment
    }
}

struct SecretRequest: Decodable, Sendable {
    let secret: String
}

struct CertificateRequest: Decodable, Sendable {
    let certificate: StoreCertificate
}

/// The answer to an action: the truth afterwards, and the transaction that the action made.
package struct ActionAnswer: Encodable, Sendable {
    package var truth: CustomerTruth
    /// The purchase or period that the action made.
    package var transaction: DeliveryTruth?
    /// A receipt of the buyer's device that contains it, in Base64.
    package var receipt: String?
    /// The purchase that waits for an approval.
    package var pendingID: String?

    enum CodingKeys: String, CodingKey {
        case transaction, receipt
        case pendingID = "pending_id"
    }

    /// Writes the truth, and the other fields beside its own.
    package func encode(to encoder: any Encoder) throws {
        try truth.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encodeIfPresent(transaction, forKey: .transaction)
        try values.encodeIfPresent(receipt, forKey: .receipt)
        try values.encodeIfPresent(pendingID, forKey: .pendingID)
    }
}

extension ActionAnswer {
    init(_ outcome: ActionOutcome, of account: Account, in world: World) {
        truth = CustomerTruth(account, in: world)
        let buyer: Buyer
        switch outcome {
        case .changed: return
        case .pending(let pending):
            pendingID = pending.id
            return
        case .bought(let number):
            let purchase = account.purchases.purchases[number]
            buyer = purchase.buyer
            transaction = DeliveryTruth(purchase, of: account, in: world)
        case .booked(let subscription, let number):
            let life = account.lives[subscription]
            buyer = life.periods[number].buyer
            transaction = DeliveryTruth(life.periods[number], of: life, account, in: world)
        }
        receipt = world.receipt(
            of: account, creation: account.now, restore: account.restore(at: account.now, of: buyer.seat))
    }
}
