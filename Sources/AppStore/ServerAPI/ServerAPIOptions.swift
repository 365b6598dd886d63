/// The addresses and limits for asking the App Store Server API.
package struct ServerAPIOptions: Sendable {
    /// Apple's address for production.
    package static let appleProductionURL = "https://api.storekit.apple.com"
    /// Apple's address for the sandbox.
    package static let appleSandboxURL = "https://api.storekit-sandbox.apple.com"

    /// The address for production, without a path at the end.
    package var productionURL: String
    /// The address for the sandbox, without a path at the end.
    package var sandboxURL: String
    /// The limit for one check with all its calls. What is left of a history is read by the next check.
    package var deadline: Duration
    /// The largest answer read, in bytes. A page of Apple's has some 110 kB.
    package var responseBytesMax: Int
    /// The most pages of a history that one check reads. A page has 20 transactions.
    package var pagesMax: Int

    /// Creates options with Apple's addresses and the suggested limits.
    package init(
        productionURL: String = appleProductionURL, sandboxURL: String = appleSandboxURL,
        deadline: Duration = .seconds(30), responseBytesMax: Int = 8 << 20, pagesMax: Int = 50
    ) {
        self.productionURL = productionURL
        self.sandboxURL = sandboxURL
        self.deadline = deadline
        self.responseBytesMax = responseBytesMax
        self.pagesMax = pagesMax
    }

    /// Returns the address of a path in one environment.
    func url(of environment: Endpoint, _ path: String) -> String {
        switch environment {
        case .production: Self.joined(productionURL, path)
        case .sandbox: Self.joined(sandboxURL, path)
        }
    }

    private static func joined(_ base: String, _ path: String) -> String {
        (base.hasSuffix("/") ? String(base.dropLast()) : base) + path
    }
}
