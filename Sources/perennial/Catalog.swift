import ArgumentParser
import JSON
import Subscriptions
import Tracking
import Yams

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

struct CatalogApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "apply", "Makes a file the whole catalog of its app.",
        notes: """
            Every mistake is reported with its line, and then nothing is changed. What products granted before now \
            stays true for the time before now.
            """,
        examples: "perennial catalog apply catalog.yaml")

    @Argument(help: ArgumentHelp("The catalog, or - for standard input.", valueName: "FILE|-"))
    var file: InputFile

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let catalog = try read()
        let hasWebhooks = try await flags.ledger { ledger in
            try await ledger.apps.applyCatalog(catalog.products, to: catalog.bundleID)
            return try await !ledger.webhooks.all().isEmpty
        }
        printLine("\(catalog.bundleID) has \(catalog.products.count.of("product", "products")) now.")
        if hasWebhooks { printError("No event reports a catalog; `perennial webhook replay` sends what it changed.") }
    }

    private func read() throws -> CatalogFile {
        let text = try file.text(bytesMax: CatalogFile.bytesMax)
        do {
            return try CatalogFile(text)
        } catch {
            for line in error.lines { printError("\(file.name): \(line)") }
            let count = error.lines.count == 1 ? "a mistake" : "\(error.lines.count) mistakes"
            throw Failure("\(file.name) has \(count); nothing was changed.")
        }
    }
}

struct CatalogShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Shows an app's catalog.",
        notes: "YAML and JSON can be applied again.",
        examples: "perennial catalog show --app com.example.app > catalog.yaml")

    enum Form: String, ExpressibleByArgument, CaseIterable {
        case yaml, json, table
    }

    @Option(help: ArgumentHelp("Apple's bundle id; may be left out while there is one app.", valueName: "B"))
    var app: BundleID?

    @Option(help: "yaml, json, or table for people.")
    var format = Form.yaml

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let catalog = try await flags.ledger { ledger in
            let bundleID = try await chosenApp(ledger)
            return CatalogFile(bundleID: bundleID, products: try await ledger.apps.catalog(of: bundleID))
        }
        switch format {
        case .yaml: printExactly(catalog.yaml)
        case .json: printExactly(catalog.json.rendered(pretty: true))
        case .table: printStyled(catalog.listing.table(in: Terminal.style))
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

/// A catalog as an operator writes it: the products of one app, in YAML or JSON.
struct CatalogFile {
    static let bytesMax = 8 << 20
    /// The most characters of a message that quotes the file: a whole file may be one line.
    static let quotedMax = 500

    let bundleID: BundleID
    let products: [CatalogProduct]
}

struct CatalogMistakes: Error {
    let lines: [String]
}

extension CatalogFile {
    /// Reads a catalog and reports every mistake with its line and its place in the file.
    init(_ text: String) throws(CatalogMistakes) {
        let root: Node?
        do {
            root = try compose(yaml: text)
        } catch {
            let sentence = ExitStatus.sentence(for: error).shortened(to: Self.quotedMax)
            throw CatalogMistakes(lines: ["This is neither YAML nor JSON: \(sentence)"])
        }
        guard let root, root.mapping != nil else {
            throw CatalogMistakes(lines: ["A catalog has the keys app and products; this file has neither."])
        }
        var reader = CatalogReader()
        let fields = reader.fields(of: root, at: "", known: ["app", "products"])
        let app = reader.requiredText("app", in: fields)
        products = reader.products(in: fields)
        bundleID = BundleID(app ?? "")
        guard reader.mistakes.isEmpty else { throw CatalogMistakes(lines: reader.mistakes) }
    }

    /// The catalog as YAML that `catalog apply` reads again.
    var yaml: String {
        var lines = ["app: \(Self.quoted(bundleID.text))", products.isEmpty ? "products: []" : "products:"]
        for product in products {
            let fields = Self.fields(of: product).map { name, value in "\(name): \(Self.flow(value))" }
            lines.append("  - {\(fields.joined(separator: ", "))}")
        }
        return lines.joined(separator: "\n")
    }

    var json: JSONValue {
        [
            "app": .string(bundleID.text),
            "products": .array(products.map { .object(Dictionary(uniqueKeysWithValues: Self.fields(of: $0))) }),
        ]
    }

    var listing: Listing {
        let columns = [
            "id", "kind", "group", "level", "period", "credit", "units", "slot", "price", "currency", "entitlements",
        ]
        let rows = products.map { product in
            let fields = Dictionary(uniqueKeysWithValues: Self.fields(of: product))
            return columns.map { fields[$0] ?? .null }
        }
        return Listing(columns: columns, rows: rows)
    }

    /// Returns the fields of a product, in the usual order. A price is text, so that no reader rounds it.
    private static func fields(of product: CatalogProduct) -> [(String, JSONValue)] {
        let fields: [(String, JSONValue)] = [
            ("id", .string(product.id.text)), ("kind", .optional(product.kind?.rawValue)),
            ("group", .optional(product.group)),
            ("level", product.level.map { .integer(Int64($0)) } ?? .null), ("period", .optional(product.period)),
            ("credit", .optional(product.credit?.name)),
            ("units", product.credit.map { .integer(Int64($0.units)) } ?? .null),
            ("delivers_since", .optional(product.deliversSince)), ("slot", product.slot?.json ?? .null),
            ("price", .optional(product.priceMilliunits.map { Milliunits($0).decimal })),
            ("currency", .optional(product.currency)),
            ("entitlements", .array(product.entitlements.map { .string($0) })),
            ("offers", product.offers.isEmpty ? .null : .array(product.offers.map(\.json))),
        ]
        return fields.filter { _, value in value != .null }
    }

    /// Quotes a text as JSON does, which is valid YAML too.
    private static func quoted(_ text: String) -> String { JSONValue.string(text).rendered() }

    private static func flow(_ value: JSONValue) -> String {
        switch value {
        case .array(let values): "[\(values.map(flow).joined(separator: ", "))]"
        case .object(let members):
            "{\(members.sorted { $0.key < $1.key }.map { "\($0.key): \(flow($0.value))" }.joined(separator: ", "))}"
        case .null, .bool, .integer, .number, .string: value.rendered()
        }
    }
}

extension CatalogProduct.Slot {
    fileprivate var json: JSONValue { ["name": .string(name), "place": .integer(Int64(place))] }
}

extension PromotionalOffer {
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(id), "audience": .array(audience.map { .string($0.rawValue) }), "once": .bool(once),
        ]
        members["from"] = from.map { .string($0.iso8601) }
        members["until"] = until.map { .string($0.iso8601) }
        return .object(members)
    }
}
