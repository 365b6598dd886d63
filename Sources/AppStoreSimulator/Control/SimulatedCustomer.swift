/// The external identity of a customer of the simulator.
package struct SimulatedCustomer: Codable, Sendable {
    /// The bundle id of the app.
    package var app: String
    /// The name, like `c000017`; the app's own user id.
    package var customer: String
    /// `Production` or `Sandbox`.
    package var environment: StoreEnvironment
    /// The device's receipt in Base64.
    package var receipt: String
    /// Apple's id of the first subscription, or of the first purchase of a customer without subscriptions.
    package var originalTransactionID: String
    /// The token the app passes to Apple with purchases, if it passes one.
    package var appAccountToken: String?

    enum CodingKeys: String, CodingKey {
        case app, customer, environment, receipt
        case originalTransactionID = "original_transaction_id"
        case appAccountToken = "app_account_token"
    }
}

/// A receipt that a device sent to the app's server.
package struct SimulatedUpload: Codable, Sendable {
    /// The bundle id of the app.
    package var app: String
    /// The app's own user id; `c000017b` is a second customer on the Apple account of `c000017`.
    package var customer: String
    /// `Production` or `Sandbox`.
    package var environment: StoreEnvironment
    /// The receipt in Base64.
    package var receipt: String
    /// The time of the upload, in milliseconds since 1970.
    package var at: Int64
    /// The reason for the upload.
    package var reason: UploadReason

    enum CodingKeys: String, CodingKey {
        case app, customer, environment, receipt, reason
        case at = "at_ms"
    }
}

extension SimulatedCustomer {
    init(_ account: Account, in world: World) {
        app = world.bundleID
        customer = account.name
        environment = account.environment
        receipt = world.receipt(of: account)
        originalTransactionID = account.lives.first?.ids.originalTransactionID ?? account.ids.purchase(0)
        appAccountToken = world.accountToken(of: account)
    }
}

extension SimulatedUpload {
    init(_ upload: Upload, of account: Account, in world: World) {
        app = world.bundleID
        customer = upload.customer
        environment = account.environment
        receipt = world.receipt(of: account, creation: upload.at, restore: upload.restore)
        at = upload.at.milliseconds
        reason = upload.reason
    }
}
