import Subscriptions

extension Condition {
    /// One sentence for the start: the problem, and what to do.
    var began: String {
        switch self {
        case .database:
            "the database does not answer and is tried until it does; nothing is lost: look after PostgreSQL, or correct "
                + "its address"
        case .standby:
            "the standby for lookups does not answer and the primary is asked instead: look after it, or unset "
                + "DATABASE_READ_URL"
        case .appStore:
            "Apple gives no answers, so every app waits and a few receipts are tried now and then: nothing is to be done, "
                + "`perennial status` shows it"
        case .noAnswers:
            "Apple gave no answer and is asked again by and by: if that lasts, look after the network and "
                + "PERENNIAL_APPSTORE_URL"
        case .pause: "checks of an app are paused and go on by themselves: `perennial status` shows when"
        case .slowness:
            "Apple asks for fewer calls or has too much to do, so it is asked more slowly; the pace grows again by itself: "
                + "nothing is to be done, `perennial status` shows it"
        case .incident:
            "Apple refuses receipts that it vouched for before; until that ends a refusal counts as no answer: nothing is "
                + "to be done, `perennial status` shows it"
        case .wrongSecret(let app, let environment):
            "Apple refuses the shared secret (21004)\(environment.map { " in \($0.rawValue)" } ?? ""): put the right one in "
                + "place with \(Self.rotation(of: app))"
        case .previousSecret(let app):
            "Apple refuses the shared secret and accepts the previous one, with which checks go on: put the right one in "
                + "place with \(Self.rotation(of: app))"
        case .sealedSecret(let app):
            "the shared secret does not open, so that Apple is not asked: set the PERENNIAL_MASTER_KEY it was sealed with, "
                + "or enter it again with \(Self.rotation(of: app))"
        case .serverAPI(let app):
            "the Server API cannot be asked, or what it says cannot be used: check the key, which `perennial app server-key "
                + "--app \(app)` stores, and the app's bundle id"
        case .clock:
            "Apple's clock is ahead of the database's, and answers more than an hour ahead count as none: check the clock of "
                + "the database's machine"
        case .unreadableRows:
            "rows of Apple's answers cannot be read; see `perennial receipt show` and `perennial explain`"
        case .unsettled(let receipt):
            "an answer could not be written, and Apple is asked again when the lease ends: see "
                + "`perennial receipt show \(receipt)`"
        case .work(let work): "could not \(work); it is tried again by and by"
        }
    }

    /// One sentence for the end.
    var ended: String {
        switch self {
        case .database: "the database answers again"
        case .standby: "the standby for lookups answers again"
        case .appStore: "Apple answers again, and all apps are asked about"
        case .noAnswers: "Apple answers again"
        case .pause: "checks of an app go on"
        case .slowness: "Apple is asked at the full pace again"
        case .incident: "Apple vouches for receipts again; what it refused is asked about once more"
        case .wrongSecret(_, let environment):
            "Apple accepts the shared secret again\(environment.map { " in \($0.rawValue)" } ?? "")"
        case .previousSecret: "Apple accepts the shared secret; the previous one is not used any more"
        case .sealedSecret: "the shared secret opens again"
        case .serverAPI: "the Server API's answers can be used again"
        case .clock: "Apple's clock and the database's agree again"
        case .unreadableRows: "Apple's answers can be read in full again"
        case .unsettled: "the answer about a receipt was written"
        case .work(let work): "can \(work) again"
        }
    }

    private static func rotation(of app: BundleID) -> String {
        "`perennial app rotate-secret \(app) --shared-secret-file FILE`"
    }
}
