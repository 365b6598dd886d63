import ArgumentParser
import Ledger
import Server
import Subscriptions
import Tracking

/// `perennial catalog`
struct CatalogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "catalog",
        abstract: "Says which products an app has and what they grant.",
        discussion: """
            A catalog is YAML or JSON:
              app: com.example.tracker
              products:
                - {id: com.example.tracker.monthly, kind: auto_renewable, group: "20000001", level: 2, period: P1M,
                   price: 4.99, currency: USD, entitlements: [pro]}
                - {id: com.example.tracker.coins, kind: consumable, credit: coins, units: 100}
            A subscription that no catalog names grants one entitlement with its product's id. A one-time purchase \
            grants nothing until a catalog names its product.
            """,
        subcommands: [CatalogApplyCommand.self, CatalogShowCommand.self])
}

/// `perennial catalog apply`
struct CatalogApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply",
        abstract: "Makes a file the whole catalog of its app.",
        discussion: """
            Every mistake is reported with its line, and then nothing is changed. What products granted before now \
            stays true for the time before now.

            Example:
              perennial catalog apply catalog.yaml
            """)

    @Argument(help: ArgumentHelp("The catalog, or - for standard input.", valueName: "FILE|-"))
    var file: String

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let catalog = try read(InputFile(file))
        let hasWebhooks = try await withLedger(settings) { ledger in
            try await ledger.apps.applyCatalog(catalog.products, to: catalog.bundleID)
            return try await !ledger.webhooks.all().isEmpty
        }
        printLine("\(catalog.bundleID) has \(catalog.products.count.of("product", "products")) now.")
        if hasWebhooks { printError("No event reports a catalog; `perennial webhook replay` sends what it changed.") }
    }

    private func read(_ file: InputFile) throws -> CatalogFile {
        let bytes = try file.contents(bytesMax: CatalogFile.bytesMax)
        do {
            return try CatalogFile(String(decoding: bytes, as: UTF8.self))
        } catch {
            for line in error.lines { printError("\(file.name): \(line)") }
            let count = error.lines.count == 1 ? "a mistake" : "\(error.lines.count) mistakes"
            throw Failure("\(file.name) has \(count); nothing was changed.")
        }
    }
}

/// `perennial catalog show`
struct CatalogShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows an app's catalog.",
        discussion: """
            YAML and JSON can be applied again.

            Example:
              perennial catalog show --app com.example.app > catalog.yaml
            """)

    /// The formats of a catalog.
    enum Form: String, ExpressibleByArgument, CaseIterable {
        case yaml
        case json
        case table
    }

    @Option(help: ArgumentHelp("Apple's bundle id; may be left out while there is one app.", valueName: "B"))
    var app: BundleID?

    @Option(help: "yaml, json, or table for people.")
    var format = Form.yaml

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        let catalog = try await withLedger(settings) { ledger in
            let bundleID = try await chosenApp(ledger)
            return CatalogFile(bundleID: bundleID, products: try await ledger.apps.catalog(of: bundleID))
        }
        switch format {
        case .yaml: printExactly(catalog.yaml)
        case .json: printExactly(catalog.json.rendered(pretty: true))
        case .table: printLine(catalog.listing.table)
        }
    }

    private func chosenApp(_ ledger: SubscriptionLedger) async throws -> BundleID {
        if let app { return app }
        let apps = try await ledger.apps.all()
        guard let only = apps.first, apps.count == 1 else {
            throw Failure("There are \(apps.count) apps; name one with --app (see `perennial app list`).")
        }
        return only.bundleID
    }
}
