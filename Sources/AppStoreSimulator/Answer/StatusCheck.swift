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

    /// The status code on the wire.
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
        var json = JSONWriter(reserving: 96)
        json.object { json in
            switch self {
            case .malformedReceipt(isException: true):
                json.number("status", status)
                json.text("exception", "java.lang.IllegalArgumentException")
            case .accountGone:
                json.number("status", status)
                json.boolean("is-retryable", false)
                json.text("environment", environment.rawValue)
            case .unreadableRequest, .malformedReceipt, .forgedReceipt, .wrongSecret, .sandboxReceiptInProduction,
                .productionReceiptInSandbox, .genuine:
                json.number("status", status)
            }
        }
        return json.bytes
    }
}
