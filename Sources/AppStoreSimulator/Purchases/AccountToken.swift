import Foundation

/// The `app_account_token` that an app passes with a purchase: a UUID. Apple returns it in lower case.
package struct AccountToken: Codable, Sendable, Hashable {
    /// The UUID in lower case.
    package let text: String

    /// Reads a UUID in any case; nil for any other text.
    package init?(_ text: String) {
        guard let uuid = UUID(uuidString: text) else { return nil }
        self.text = uuid.uuidString.lowercased()
    }

    /// Reads the text of a UUID.
    package init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        guard let token = AccountToken(try value.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: value, debugDescription: "a token is a UUID")
        }
        self = token
    }

    /// Writes the UUID in lower case.
    package func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(text)
    }
}
