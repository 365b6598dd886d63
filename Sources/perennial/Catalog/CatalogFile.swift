import Ledger
import Subscriptions
import Yams

/// A catalog as an operator writes it: the products of one app, in YAML or JSON.
struct CatalogFile {
    /// The most bytes of a catalog.
    static let bytesMax = 8 << 20

    let bundleID: BundleID
    /// Its products, in the order of the file.
    let products: [CatalogProduct]
}

/// All mistakes in a catalog.
struct CatalogMistakes: Error {
    /// One sentence for each mistake, with its place.
    let lines: [String]
}

extension CatalogFile {
    /// Reads a catalog and reports every mistake with its line and its place in the file.
    init(_ text: String) throws(CatalogMistakes) {
        let root: Node?
        do {
            root = try compose(yaml: text)
        } catch {
            throw CatalogMistakes(lines: ["This is neither YAML nor JSON: \(ExitStatus.sentence(for: error))"])
        }
        guard let root, root.mapping != nil else {
            throw CatalogMistakes(lines: ["A catalog has the keys app and products; this file has neither."])
        }
        var reader = CatalogReader()
        let fields = reader.fields(of: root, at: "", known: ["app", "products"])
        let app = reader.requiredText("app", in: fields, of: root, at: "")
        products = reader.products(in: fields["products"], of: root)
        bundleID = BundleID(app ?? "")
        guard reader.mistakes.isEmpty else { throw CatalogMistakes(lines: reader.mistakes) }
    }
}
