import Ledger

/// Entitlements in the words of an answer: whatever does not depend on when it is asked for.
struct ToldEntitlements: Sendable {
    /// The list, as JSON.
    let text: JSONText
    /// What the list means.
    let tag: EntityTag

    /// The words for some entitlements.
    init(_ entitlements: [Entitlement]) {
        text = JSONText(.array(entitlements.map(\.json)))
        tag = EntityTag(entitlements.flatMap(\.meaning))
    }
}

extension Entitlement {
    /// What it says but for the clocks of the answers that say so.
    fileprivate var meaning: [JSONValue] {
        [
            .string(name), .bool(granted), .optional(until?.milliseconds), .optional(productID?.text),
            .optional(state), .optional(reason), .string(environment.rawValue), .string(basis),
        ]
    }

    /// The entitlement as lookups tell it.
    var json: JSONValue {
        [
            "entitlement": .string(name),
            "granted": .bool(granted),
            "until": .optional(until?.iso8601),
            "product_id": .optional(productID?.text),
            "state": .optional(state),
            "reason": .optional(reason),
            "environment": .string(environment.rawValue),
            "basis": .string(basis),
            "as_of": .optional(asOf?.iso8601),
            "checked_at": .optional(checkedAt?.iso8601),
        ]
    }
}
