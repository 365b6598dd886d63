import Foundation

/// The answer to a call of verifyReceipt.
extension Simulator {
    /// Answers the body of one verifyReceipt call, without HTTP and without faults.
    package func answer(_ body: [UInt8], at environment: StoreEnvironment) -> [UInt8] {
        let (answer, requestedAt) = finishedAnswer(body, at: environment)
        return answer.bytes(requestedAt: requestedAt)
    }

    /// Answers the body of one verifyReceipt call; returns the response and the instant for its gap, the request date.
    func finishedAnswer(
        _ body: [UInt8], at environment: StoreEnvironment
    ) -> (answer: RenderedAnswer, requestedAt: StoreTime) {
        let now = clock.now
        func refused(_ check: StatusCheck) -> (answer: RenderedAnswer, requestedAt: StoreTime) {
            (RenderedAnswer(whole: check.errorBody(at: environment)), now)
        }
        guard let request = VerifyRequest(body) else { return refused(.unreadableRequest) }
        guard let receipt = request.receiptData, !receipt.isEmpty else {
            return refused(.malformedReceipt(isException: false))
        }
        let reading = world.knownReceipts.read(receipt)
        if let neighbour, reading == .forged { return neighbour.finishedAnswer(body, at: environment) }
        let check = StatusCheck(reading, of: receipt, password: request.password, at: environment, secret: world.secret)
        guard case .genuine(let identity) = check else { return refused(check) }
        let lag = conditions.lag(of: identity.customer)
        guard lag == 0 else {
            let answer = world.answer(
                identity, excludesOldTransactions: request.excludesOldTransactions, asOf: self.now - lag, at: self.now)
            return answer.map { ($0, now) } ?? refused(.accountGone)
        }
        let found = world.answer(
            identity, excludesOldTransactions: request.excludesOldTransactions, at: options.standsStill ? self.now : now
        )
        guard let found else { return refused(.accountGone) }
        // Another call may have advanced this life after the clock was read; its time is the later one.
        return (found.answer, max(now, found.now))
    }
}

/// Apple's status codes, checked in Apple's order: form, signature, environment, secret, account.
enum StatusCheck: Sendable, Equatable {
    case unreadableRequest
    case malformedReceipt(isException: Bool)
    case forgedReceipt
    case wrongSecret
    case sandboxReceiptInProduction
    case productionReceiptInSandbox
    case accountGone
    case genuine(ReceiptIdentity)

    /// Checks everything except the account, which only the population knows.
    init(
        _ reading: ReceiptCodec.Reading, of receipt: [UInt8], password: [UInt8]?, at environment: StoreEnvironment,
        secret: [UInt8]
    ) {
        switch reading {
        case .malformed: self = .malformedReceipt(isException: receipt.contains { $0 <= UInt8(ascii: " ") })
        case .forged: self = .forgedReceipt
        case .genuine(let identity):
            switch (identity.environment, environment) {
            case (.sandbox, .production): self = .sandboxReceiptInProduction
            case (.production, .sandbox): self = .productionReceiptInSandbox
            case (.production, .production), (.sandbox, .sandbox):
                self = password == secret && !identity.isDisguised ? .genuine(identity) : .wrongSecret
            }
        }
    }

    var status: Int64 {
        switch self {
        case .unreadableRequest: 21000
        case .malformedReceipt: 21002
        case .forgedReceipt: 21003
        case .wrongSecret: 21004
        case .sandboxReceiptInProduction: 21007
        case .productionReceiptInSandbox: 21008
        case .accountGone: 21010
        case .genuine: 0
        }
    }

    /// Returns the short body of a response without a receipt.
    func errorBody(at environment: StoreEnvironment) -> [UInt8] {
        JSONWriter.object(reserving: 96) { json in
            json.number("status", status)
            switch self {
            case .malformedReceipt(isException: true): json.text("exception", "java.lang.IllegalArgumentException")
            case .accountGone:
                json.boolean("is-retryable", false)
                json.text("environment", environment.rawValue)
            case .unreadableRequest, .malformedReceipt, .forgedReceipt, .wrongSecret, .sandboxReceiptInProduction,
                .productionReceiptInSandbox, .genuine:
                break
            }
        }
    }
}

/// The request body of a verifyReceipt call, read as leniently as Apple reads it.
struct VerifyRequest: Sendable {
    /// The receipt as text; nil when it is missing or not a string.
    private(set) var receiptData: [UInt8]?
    private(set) var password: [UInt8]?
    private(set) var excludesOldTransactions = false

    /// Reads a body; nil when it is not a JSON object.
    init?(_ body: [UInt8]) {
        if let members = FlatJSON.members(of: body) {
            for member in members { take(member.key, member.value) }
            return
        }
        guard let written = try? JSONDecoder().decode(Written.self, from: Data(body)) else { return nil }
        receiptData = written.receiptData.map { Array($0.utf8) }
        password = written.password.map { Array($0.utf8) }
        excludesOldTransactions = written.excludesOldTransactions
    }

    /// Takes a field of the body, where it is one that verifyReceipt reads.
    private mutating func take(_ key: String, _ value: FlatJSON.Value) {
        switch (key, value) {
        case ("receipt-data", .text(let text)): receiptData = text
        case ("password", .text(let text)): password = text
        case ("exclude-old-transactions", .boolean(let isWanted)): excludesOldTransactions = isWanted
        case (_, .text), (_, .boolean): break
        }
    }

    /// The same fields, for bodies with escapes, numbers or anything else unusual.
    private struct Written: Decodable {
        let receiptData: String?
        let password: String?
        let excludesOldTransactions: Bool

        enum CodingKeys: String, CodingKey {
            case receiptData = "receipt-data"
            case password
            case excludesOldTransactions = "exclude-old-transactions"
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            // A value of another type counts as missing; only unreadable JSON is refused.
            receiptData = (try? values.decodeIfPresent(String.self, forKey: .receiptData)) ?? nil
            password = (try? values.decodeIfPresent(String.self, forKey: .password)) ?? nil
            excludesOldTransactions =
                ((try? values.decodeIfPresent(Bool.self, forKey: .excludesOldTransactions)) ?? nil) ?? false
        }
    }
}
