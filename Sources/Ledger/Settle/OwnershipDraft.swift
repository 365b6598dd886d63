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

    /// Serves the claims of an upload, in order; returns the events of the changes.
    mutating func serve(
        _ claims: [OwnershipClaim], of receipt: ReceiptID, policy: OwnershipPolicy, accountToken: String?,
        givesAccess: Bool
    ) -> [EventKind] {
        let first = current == nil ? firstOwner(among: claims, accountToken: accountToken) : nil
        let ordered = [first].compactMap { $0 } + claims.filter { $0 != first }
        return ordered.compactMap { claim in
            let answer = decideOwnership(
                of: claim, owner: current, policy: policy, accountToken: accountToken, givesAccess: givesAccess)
            answers[receipt, default: [:]][claim.name] = answer
            return take(claim, answer)
        }
    }

    private mutating func take(_ claim: OwnershipClaim, _ answer: OwnershipAnswer) -> EventKind? {
        switch answer {
        case .held, .refused:
            return nil
        case .assigned:
            newOwner = Owner(customer: claim.customer, rowID: nil, transfers: 0)
            return .ownershipAssigned
        case .transferred:
            newOwner = Owner(customer: claim.customer, rowID: nil, transfers: (current?.transfers ?? 0) + 1)
            return .ownershipTransferred
        }
    }
}
