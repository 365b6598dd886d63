/// The key of a customer.
struct CustomerID: Hashable, Sendable {
    let number: Int64
}

/// A customer's wish to own what an uploaded receipt holds.
struct OwnershipClaim: Hashable, Sendable {
    let customer: CustomerID
    /// The operator's own id of the customer.
    let name: String
    let imported: Bool
    /// Whether no settlement has served it yet. One that was served can only claim what nobody owns.
    let isNew: Bool
}

/// Who owns a thing now, and how often that changed lately.
struct Owner: Hashable, Sendable {
    var customer: CustomerID
    /// The operator's own id of the customer.
    var name: String
    /// The open row that says so; nil when this settlement made them the owner.
    var rowID: Int64?
    /// Transfers in the last 30 days.
    var transfers: Int
}

/// Why a customer owns a thing.
package enum OwnershipCause: String, Sendable, CaseIterable {
    /// They uploaded a receipt that holds it.
    case upload
    /// It was imported as theirs.
    case imported = "import"
    /// Its `app_account_token` names them.
    case token
    /// It was another name's that is theirs now.
    case merge
    /// That name is its own customer's again.
    case split
    /// A person gave it to them.
    case assignment

    /// Whether a person decided it, not a receipt.
    var isByHand: Bool {
        switch self {
        case .upload, .imported, .token: false
        case .merge, .split, .assignment: true
        }
    }
}

/// What became of a customer's claim to a subscription or purchase, and why.
package enum OwnershipAnswer: Hashable, Sendable {
    /// The customer owned it already.
    case held
    /// Nobody owned it; now the customer does.
    case assigned
    /// Another customer owned it; now this one does.
    case transferred
    /// Another customer goes on owning it; one sentence says why.
    case refused(String)
}

/// Transfers of one subscription in 30 days, after which its owner keeps it.
let transfersMax = 3

/// Decides one claim by the app's policy; a matching `app_account_token` beats every policy.
func decideOwnership(
    of claim: OwnershipClaim, owner: Owner?, policy: OwnershipPolicy, accountToken: String?, givesAccess: Bool
) -> OwnershipAnswer {
    guard let owner else { return .assigned }
    if owner.customer == claim.customer { return .held }
    if names(accountToken, claim.name) { return .transferred }
    if names(accountToken, owner.name) {
        return .refused("Its app_account_token names its owner.")
    }
    if claim.imported, givesAccess {
        return .refused("An import does not take a live subscription from its owner.")
    }
    switch policy {
    case .keep:
        return .refused("The app's policy is that the first owner keeps it.")
    case .transferIfLapsed where givesAccess:
        return .refused("The app's policy transfers only what gives no access any more.")
    case .transfer, .transferIfLapsed:
        guard owner.transfers < transfersMax else {
            return .refused("It was transferred \(transfersMax) times in 30 days; its owner keeps it for now.")
        }
        return .transferred
    }
}

/// The claim that is served first at first sight: the customer the `app_account_token` names, else the owner of the rest of the
/// receipt, else the newest uploader.
func firstOwner(
    among claims: [OwnershipClaim], of receiptOwner: Owner?, accountToken: String?
) -> OwnershipClaim? {
    if let named = claims.last(where: { names(accountToken, $0.name) }) { return named }
    guard let owner = receiptOwner else { return claims.last }
    return claims.last { $0.customer == owner.customer }
        ?? OwnershipClaim(customer: owner.customer, name: owner.name, imported: false, isNew: false)
}

extension OwnershipClaim {
    /// Why the customer owns what this claim gets them.
    func cause(accountToken: String?) -> OwnershipCause {
        if names(accountToken, name) { return .token }
        return imported ? .imported : .upload
    }
}

private func names(_ accountToken: String?, _ customer: String) -> Bool {
    accountToken?.lowercased() == customer.lowercased()
}
