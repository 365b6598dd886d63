import Ledger

/// Entitlements written for responses: the part that does not depend on the time of the request.
struct RenderedEntitlements: Sendable {
    /// The list as JSON.
    let text: JSONText
    /// The tag of the list's meaning.
    let tag: EntityTag

    /// Writes some entitlements.
    init(_ entitlements: [Entitlement]) {
        text = JSONText(.array(entitlements.map(\.json)))
        tag = EntityTag(entitlements.flatMap(\.meaning))
    }
}

extension Entitlement {
    /// Its content without the clocks of Apple's answers.
    fileprivate var meaning: [JSONValue] {
        [
            .string(name), .bool(granted), .optional(until?.milliseconds), .optional(productID?.text),
            .optional(state), .optional(reason), .string(environment.rawValue), .string(basis),
        ]
    }

    /// The entitlement as lookups report it.
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
