import Subscriptions

/// A receipt as a customer's device, or an import, brought it.
package struct Upload: Sendable {
    /// The app it is for.
    package var appID: Int32
    /// The operator's own id of the customer, 1 to 255 characters.
    package var customer: String
    /// The receipt's bytes, after base64 was normalised and decoded.
    package var receipt: [UInt8]
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    package var imported: Bool
    /// The storefront the device saw.
    package var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of that price.
    package var currency: String?
    /// When it runs out as far as somebody says without Apple: decides only how soon Apple is asked about an import.
    package var expiresAt: Instant?
    /// What the customer has until Apple is asked.
    package var provisional: Provisional?

    /// An upload.
    package init(
        appID: Int32, customer: String, receipt: [UInt8], imported: Bool, storefront: String? = nil,
        priceMilliunits: Int64? = nil, currency: String? = nil, expiresAt: Instant? = nil,
        provisional: Provisional? = nil
    ) {
        self.appID = appID
        self.customer = customer
        self.receipt = receipt
        self.imported = imported
        self.storefront = storefront
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.expiresAt = expiresAt
        self.provisional = provisional
    }

    /// The longest id of a customer, in characters.
    private static let customerCharactersMax = 255

    /// Throws unless the text can be a customer's id: 1 to 255 characters, none of them NUL.
    package static func requireCustomer(_ customer: String) throws(LedgerError) {
        try HandDecision.require(customer, "A customer id", charactersMax: customerCharactersMax)
    }
}

/// The operator's word for what a customer has until Apple is asked about the receipt: what the catalog says of a product.
package struct Provisional: Sendable, Hashable {
    /// The longest time it lasts from when it was first said, in days.
    package static let daysMax: Int64 = 90

    /// The product.
    package var productID: ProductID
    /// When it ends, should Apple not be asked by then; the ledger cuts it to `daysMax`.
    package var until: Instant
    /// Apple's environment the receipt seems to be from.
    package var environment: StoreEnvironment

    /// A word for a product.
    package init(productID: ProductID, until: Instant, environment: StoreEnvironment = .production) {
        self.productID = productID
        self.until = until
        self.environment = environment
    }
}

/// Where an upload went.
package struct StoredUpload: Sendable, Hashable {
    /// The receipt's key.
    package let receiptID: ReceiptID
    /// Whether the receipt was not known before.
    package let isNew: Bool
    /// Whose it is: the customer the upload named, or the one whose name that is now.
    package let customer: String
}
