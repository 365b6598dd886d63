/// The reason a text cannot be sent to Apple as `receipt-data`. Each sentence names what the text appears to be and the
/// remedy.
package enum ReceiptDataError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Nothing is left after white space and quotes are removed, or the text is a word for nothing such as `null`.
    case empty
    /// The text has more characters than `ReceiptData.charactersMax`.
    case tooLarge(characters: Int)
    /// A StoreKit 2 transaction or another signed JSON web token.
    case signedTransaction
    /// The body of an App Store Server Notification, version 2.
    case serverNotification
    /// Another JSON object, for example a whole request or an answer from Apple.
    case json
    /// A property list that was not Base64 encoded, such as an old transaction receipt before encoding.
    case propertyList
    /// A web page.
    case webPage
    /// A character that no repair explains, with its position from 1 in the repaired text.
    case foreignCharacter(String, position: Int)
    /// A length that Base64 cannot have; the end is missing.
    case cutShort(characters: Int)

    /// The error in one sentence for a person.
    package var description: String {
        switch self {
        case .empty:
            "The receipt is empty; read it from the app's receipt file after a refresh and send it as Base64."
        case .tooLarge(let characters):
            "The receipt has \(characters) characters, more than \(ReceiptData.charactersMax); send only the receipt itself."
        case .signedTransaction:
            "This is a signed JSON web token of StoreKit 2, not a receipt; send the Base64 of the app's receipt file."
        case .serverNotification:
            "This is an App Store Server Notification (signedPayload), not a receipt; send it to the notifications address."
        case .json:
            "This is a JSON object, not a receipt; send only the Base64 text that belongs in receipt-data."
        case .propertyList:
            "This is an old transaction receipt in clear text; encode its bytes as Base64 and send that."
        case .webPage:
            "This is a web page, not a receipt; send the Base64 of the app's receipt file."
        case .foreignCharacter(let character, let position):
            "The receipt is not Base64: it has \(character) at position \(position); encode the receipt file as Base64."
        case .cutShort(let characters):
            "The receipt is cut short: \(characters) characters cannot be Base64; send the whole text."
        }
    }
}
