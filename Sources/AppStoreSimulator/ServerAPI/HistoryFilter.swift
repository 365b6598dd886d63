/// The part of a history that a call asks for.
struct HistoryFilter: Sendable {
    private let productIDs: [String]
    private let kinds: [String]
    private let groups: [String]
    private let ownership: String?
    private let isRevoked: Bool?
    private let start: Int64?
    private let end: Int64?
    /// The first version of the call has no finished consumables.
    private let hasFinished: Bool
    let isDescending: Bool

    init(_ call: ServerCall) throws(ServerError) {
        productIDs = call.values("productId")
        guard productIDs.allSatisfy({ !$0.isEmpty }) else { throw .invalidProductID }
        kinds = call.values("productType")
        guard kinds.allSatisfy({ DeliveryKind.allCases.map(\.productType).contains($0) }) else {
            throw .invalidProductType
        }
        groups = call.values("subscriptionGroupIdentifier")
        guard groups.allSatisfy({ !$0.isEmpty }) else { throw .invalidGroup }
        ownership = call.values("inAppOwnershipType").first
        guard ["FAMILY_SHARED", "PURCHASED", "ASSIGNED", nil].contains(ownership) else { throw .invalidOwnership }
        isRevoked = try Self.word(call, "revoked", ["true": true, "false": false], orElse: .invalidRevoked)
        isDescending =
            try Self.word(call, "sort", ["DESCENDING": true, "ASCENDING": false], orElse: .invalidSort) ?? false
        start = try Self.instant(call, "startDate", orElse: .invalidStart)
        end = try Self.instant(call, "endDate", orElse: .invalidEnd)
        if let start, let end, start > end { throw .startAfterEnd }
        hasFinished = !call.isFirstVersion
    }

    func admits(_ transaction: SignedTransaction) -> Bool {
        let purchase = transaction.purchase.milliseconds
        return (productIDs.isEmpty || productIDs.contains(transaction.productID))
            && (kinds.isEmpty || kinds.contains(transaction.kind.productType))
            && (groups.isEmpty || groups.contains(transaction.groupID ?? ""))
            && (ownership.map { $0 == transaction.ownership } ?? true)
            && (isRevoked.map { $0 == (transaction.revocation != nil) } ?? true)
            && (start.map { purchase >= $0 } ?? true) && (end.map { purchase < $0 } ?? true)
            && (hasFinished || transaction.kind != .consumable || !transaction.isFinished)
    }

    private static func word(
        _ call: ServerCall, _ name: String, _ words: [String: Bool], orElse refusal: ServerError
    ) throws(ServerError) -> Bool? {
        guard let text = call.values(name).first else { return nil }
        guard let found = words[text] else { throw refusal }
        return found
    }

    private static func instant(
        _ call: ServerCall, _ name: String, orElse refusal: ServerError
    ) throws(ServerError) -> Int64? {
        guard let text = call.values(name).first else { return nil }
        guard let found = Int64(text), found >= 0 else { throw refusal }
        return found
    }
}
