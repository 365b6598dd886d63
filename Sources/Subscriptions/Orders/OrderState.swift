/// Where an order is.
package enum OrderState: String, Sendable, CaseIterable {
    /// It was placed; the customer was not asked to pay yet.
    case created
    /// The device shows Apple's payment sheet.
    case purchasing
    /// Apple waits for another person, such as a parent who has to approve.
    case deferred
    /// A transaction pays it; what it gives is due.
    case paid
    /// What it gives was carried out.
    case delivered
    /// The customer cancelled the payment.
    case cancelled
    /// The payment failed.
    case failed
    /// It was not paid in time.
    case expired
    /// What it gave was taken back.
    case refunded

    /// Whether it waits for its payment. A payment also revives what was cancelled, failed or expired.
    package var isOpen: Bool {
        switch self {
        case .created, .purchasing, .deferred: true
        case .paid, .delivered, .cancelled, .failed, .expired, .refunded: false
        }
    }
}
