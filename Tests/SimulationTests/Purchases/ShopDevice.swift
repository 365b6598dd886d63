import Foundation

/// What an app and its service remember of one purchase, in a file that is replaced as a whole.
struct ShopDevice: Codable, Sendable {
    struct Order: Codable, Sendable {
        let order_id, key, app_account_token: String
    }

    let customer: String
    var order: Order?
    var transaction: String?
    var receipt: String?
    /// Whether an answer had the transaction in `may_finish`.
    var mayFinish = false
    var isRefunded = false
    var isReversed = false
    var isFinished = false

    init(customer: String) { self.customer = customer }

    init(from file: URL) throws {
        self = try JSONDecoder().decode(ShopDevice.self, from: Data(contentsOf: file))
    }

    func write(to file: URL) throws { try JSONEncoder().encode(self).write(to: file, options: .atomic) }
}
