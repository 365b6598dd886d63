/// The App Store as Perennial sees it: one question. A struct with one closure, so that tests can pass their own.
package struct AppStoreClient: Sendable {
    /// Asks Apple about a receipt. Never throws: an outage is an answer too.
    package var verify: @Sendable (AppStoreRequest) async -> AppStoreAnswer

    /// Creates a client that answers with `verify`.
    package init(verify: @escaping @Sendable (AppStoreRequest) async -> AppStoreAnswer) {
        self.verify = verify
    }
}
