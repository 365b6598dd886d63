import Subscriptions

/// Who owns a subscription or purchase while it is being settled.
struct OwnershipDraft: Sendable {
    /// The stored owner.
    var owner: Owner?
    /// The owner this settlement makes.
    var newOwner: Owner?
    /// What became of each upload's claim, by receipt and customer.
    var answers: [ReceiptID: [String: OwnershipAnswer]] = [:]

    /// The owner after this settlement.
    var current: Owner? { newOwner ?? owner }

    /// Serves the claims of a receipt's uploads, oldest first; returns the events of the changes.
    ///
    /// What nobody owns is assigned, whenever it appears in the receipt; only a new upload can take what is owned.
    mutating func serve(
        _ claims: [OwnershipClaim], of receipt: ReceiptID, policy: OwnershipPolicy, accountToken: String?,
        givesAccess: Bool
    ) -> [EventKind] {
        guard current != nil else {
            return serveFirst(firstOwner(among: claims, accountToken: accountToken), claims, of: receipt)
        }
        return claims.filter(\.isNew).compactMap { claim in
            let answer = decideOwnership(
                of: claim, owner: current, policy: policy, accountToken: accountToken, givesAccess: givesAccess)
            answers[receipt, default: [:]][claim.name] = answer
            return take(claim, answer)
        }
    }

    /// First sight: one of the claims is served, and the others are not transfers.
    private mutating func serveFirst(
        _ first: OwnershipClaim?, _ claims: [OwnershipClaim], of receipt: ReceiptID
    ) -> [EventKind] {
        guard let first else { return [] }
        for claim in claims where claim.isNew && claim != first {
            answers[receipt, default: [:]][claim.name] = .refused("Another customer who uploaded it was served first.")
        }
        answers[receipt, default: [:]][first.name] = .assigned
        return [take(first, .assigned)].compactMap { $0 }
    }

    private mutating func take(_ claim: OwnershipClaim, _ answer: OwnershipAnswer) -> EventKind? {
        switch answer {
        case .held, .refused:
            return nil
        case .assigned:
            newOwner = Owner(customer: claim.customer, name: claim.name, rowID: nil, transfers: 0)
            return .ownershipAssigned
        case .transferred:
            newOwner = Owner(
                customer: claim.customer, name: claim.name, rowID: nil, transfers: (current?.transfers ?? 0) + 1)
            return .ownershipTransferred
        }
    }
}
