/// A customer of the app on an Apple account: an account has a first one, and may have a second one.
enum Seat: Sendable {
    case first, second

    /// Returns the seat in a name of ``CustomerName``.
    init(of name: String) { self = name.hasSuffix("b") ? .second : .first }

    func name(of index: Int) -> String {
        switch self {
        case .first: CustomerName.first(index)
        case .second: CustomerName.second(index)
        }
    }
}

/// The customer who made a purchase, and the token the app passed with it.
struct Buyer: Sendable {
    var seat = Seat.first
    /// Nil when the purchase names none; a first customer then has the token of the account, if the app passes tokens.
    var token: AccountToken?
}
