import Subscriptions

/// A receipt as a customer's device, or an import, brought it.
public struct Upload: Sendable {
    /// The app it is for.
    public var appID: Int32
    /// The operator's own id of the customer, 1 to 255 characters.
    public var customer: String
    /// The receipt's bytes, after base64 was normalised and decoded.
    public var receipt: [UInt8]
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    public var imported: Bool
    /// The storefront the device saw.
    public var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    public var priceMilliunits: Int64?
    /// The currency of that price.
    public var currency: String?
    /// When it runs out as far as somebody says without Apple: decides only how soon Apple is asked about an import.
    public var expiresAt: Instant?
    /// What the customer has until Apple is asked.
    public var provisional: Provisional?

    /// An upload.
    public init(
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
    public static func requireCustomer(_ customer: String) throws(LedgerError) {
        try HandDecision.require(customer, "A customer id", charactersMax: customerCharactersMax)
    }
}

/// The operator's word for what a customer has until Apple is asked about the receipt: what the catalog says of a product.
public struct Provisional: Sendable, Hashable {
    /// The longest time it lasts from when it was first said, in days.
    public static let daysMax: Int64 = 90

    /// The product.
    public var productID: ProductID
    /// When it ends, should Apple not be asked by then; the ledger cuts it to `daysMax`.
    public var until: Instant
    /// Apple's environment the receipt seems to be from.
    public var environment: StoreEnvironment

    /// A word for a product.
    public init(productID: ProductID, until: Instant, environment: StoreEnvironment = .production) {
        self.productID = productID
        self.until = until
        self.environment = environment
    }
}

/// Where an upload went.
public struct StoredUpload: Sendable, Hashable {
    /// The receipt's key.
    public let receiptID: ReceiptID
    /// Whether the receipt was not known before.
    public let isNew: Bool
    /// Whose it is: the customer the upload named, or the one whose name that is now.
    public let customer: String
}
