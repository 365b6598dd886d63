import SeededRandom
import Subscriptions
import Testing

@testable import Tracking

@Suite("What a customer is offered follows from the catalog and from what is known of the customer")
struct ShopTests {
    private static let now = Instant(milliseconds: 1_800_000_000_000)

    private static func product(
        _ id: ProductID, _ kind: ProductKind? = .autoRenewable, group: String? = nil, place: Int32? = nil,
        offers: [PromotionalOffer] = []
    ) -> CatalogProduct {
        var product = CatalogProduct(id: id, kind: kind, group: group, entitlements: [])
        product.slot = place.map { CatalogProduct.Slot(name: "main", place: $0) }
        product.offers = offers
        return product
    }

    private static let catalog = [
        product("coins", .consumable), product("mystery", nil), product("yearly", group: "g"),
        product("third", .nonRenewing, place: 3), product("first", group: "g", place: 1),
        product("second", group: "h", place: 2), product("loose"),
    ]

    private static func own(
        _ product: ProductID, isCurrent: Bool = true, isShared: Bool = false, groups: Set<String> = [],
        trial: Bool = false, redeemed: Set<String> = []
    ) -> Holding {
        Holding(
            isOwn: true, isOfAnother: false, isInReceipt: false, product: product, isCurrent: isCurrent,
            isShared: isShared, products: [product], groups: groups, hadIntroductory: trial, redeemed: redeemed)
    }

    private static func another(
        _ product: ProductID, inReceipt: Bool, groups: Set<String> = [], trial: Bool = false
    ) -> Holding {
        var holding = own(product, isCurrent: false, groups: groups, trial: trial)
        (holding.isOwn, holding.isOfAnother, holding.isInReceipt) = (false, true, inReceipt)
        return holding
    }

    private static func shop(_ holdings: [Holding], _ catalog: [CatalogProduct] = catalog) -> Shop {
        Shop(catalog, for: Buyer(now: now, holdings: holdings))
    }

    private static func slot(_ holdings: [Holding]) -> [ProductID] {
        shop(holdings).productsOnOffer.filter { $0.product.slot != nil }.map(\.product.id)
    }

    @Test("A newcomer is offered every product with a kind, and the first one of a slot")
    func newcomer() {
        let products = Self.shop([]).productsOnOffer
        #expect(products.map(\.product.id) == ["coins", "yearly", "first", "loose"])
        #expect(products.map(\.isIntroductoryEligible) == [false, true, true, nil])
        #expect(products.allSatisfy { $0.replaces == nil && $0.offers.isEmpty })
    }

    @Test("What another customer on the Apple account had is not on offer, in any period or group of it")
    func slots() {
        #expect(Self.slot([Self.another("first", inReceipt: true)]) == ["second"])
        #expect(Self.slot([Self.another("yearly", inReceipt: true)]) == ["second"])
        #expect(Self.slot([Self.another("retired", inReceipt: true, groups: ["g"])]) == ["second"])
        #expect(Self.slot([Self.another("coins", inReceipt: true)]) == ["first"])
        var changed = Self.another("retired", inReceipt: true)
        changed.products.insert("first")
        #expect(Self.slot([changed]) == ["second"])
        let both = [Self.another("first", inReceipt: true), Self.another("second", inReceipt: true)]
        #expect(Self.slot(both) == ["third"])
        #expect(Self.slot(both + [Self.another("third", inReceipt: true)]) == [])
        #expect(Self.slot([Self.own("first"), Self.own("second", isCurrent: false)]) == ["first"])
    }

    @Test("Orders from the same device count where no receipt shows another customer")
    func devices() {
        #expect(Self.slot([Self.another("first", inReceipt: false)]) == ["second"])
        #expect(
            Self.slot([Self.another("second", inReceipt: true), Self.another("first", inReceipt: false)]) == ["first"])
    }

    @Test("A purchase replaces the customer's running subscription of the same group")
    func replaces() {
        func replaced(_ holdings: [Holding]) -> [ProductID: ProductID] {
            Self.shop(holdings).productsOnOffer.reduce(into: [:]) { $0[$1.product.id] = $1.replaces }
        }
        #expect(replaced([Self.own("yearly")]) == ["first": "yearly"])
        #expect(replaced([Self.own("first")]) == ["yearly": "first"])
        #expect(replaced([Self.own("retired", groups: ["g"])]) == ["first": "retired", "yearly": "retired"])
        #expect(replaced([Self.own("yearly", isCurrent: false)]) == [:])
        #expect(replaced([Self.own("second"), Self.own("loose")]) == [:])
        #expect(replaced([Self.own("yearly", isShared: true)]) == [:], "the family keeps it")
        #expect(replaced([Self.own("yearly", isShared: true), Self.own("first")]) == ["yearly": "first"])
        #expect(replaced([Self.another("yearly", inReceipt: true)]) == [:])
    }

    @Test("One introductory offer in a group, for an Apple account, and none while it subscribes there")
    func introductory() {
        func eligible(_ holdings: [Holding]) -> [ProductID: Bool] {
            Self.shop(holdings).productsOnOffer.reduce(into: [:]) { $0[$1.product.id] = $1.isIntroductoryEligible }
        }
        let all: [ProductID: Bool] = ["coins": false, "yearly": true, "first": true]
        let none: [ProductID: Bool] = ["coins": false, "yearly": false, "first": false]
        #expect(eligible([Self.own("yearly", isCurrent: false)]) == all)
        #expect(eligible([Self.own("yearly")]) == none)
        #expect(eligible([Self.own("yearly", isShared: true)]) == all)
        #expect(eligible([Self.own("yearly", isShared: true), Self.own("first", isCurrent: false)]) == all)
        #expect(eligible([Self.own("yearly", isCurrent: false, trial: true)]) == none)
        #expect(eligible([Self.own("retired", groups: ["g"], trial: true)]) == none)
        #expect(eligible([Self.own("second", groups: ["h"], trial: true)]) == all)
        let account: [ProductID: Bool] = ["coins": false, "yearly": false, "second": true]
        #expect(eligible([Self.another("first", inReceipt: true, trial: true)]) == account)
        let device: [ProductID: Bool] = ["coins": false, "yearly": true, "second": true]
        #expect(eligible([Self.another("first", inReceipt: false, trial: true)]) == device)
    }

    @Test("Who is eligible, and what is replaced, agree with a few lines over any holdings")
    func anyHoldings() throws {
        for seed in UInt64(1)...2_000 {
            var random = Seeded(seed: seed)
            func flag() -> Bool { Bool.random(using: &random) }
            let holdings = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                let product = ["yearly", "first", "second", "loose", "retired"].randomElement(using: &random) ?? ""
                var holding = Self.own(
                    ProductID(product), isCurrent: flag(), isShared: flag(), groups: flag() ? ["g"] : [],
                    trial: Int.random(in: 0..<4, using: &random) == 0)
                (holding.isOwn, holding.isInReceipt) = (flag(), flag())
                return holding
            }
            let groups: [ProductID: String] = ["yearly": "g", "first": "g", "second": "h"]
            for found in Self.shop(holdings).productsOnOffer where found.product.kind == .autoRenewable {
                let id = found.product.id
                let alike = holdings.filter { holding in
                    holding.product == id
                        || groups[id].map { $0 == groups[holding.product] || holding.groups.contains($0) } ?? false
                }
                let bought = alike.filter { $0.isCurrent && !$0.isShared }
                let onAccount = (bought + alike.filter(\.hadIntroductory)).filter { $0.isOwn || $0.isInReceipt }
                #expect(found.isIntroductoryEligible == groups[id].map { _ in onAccount.isEmpty }, "\(random) \(id)")
                let replaced = bought.first(where: \.isOwn)?.product
                #expect(found.replaces == (replaced == id ? nil : replaced), "\(random) \(id)")
            }
        }
    }

    /// An offer that is right but for what a case changes.
    private static func offer(
        _ audience: [PromotionalOffer.Audience], from: Int64? = nil, until: Int64? = nil, once: Bool = false
    ) -> PromotionalOffer {
        func at(_ minutes: Int64?) -> Instant? { minutes.map { now + .minutes($0) } }
        return PromotionalOffer(id: "o", audience: audience, from: at(from), until: at(until), once: once)
    }

    private static let running = own("first")
    private static let over = own("first", isCurrent: false)

    @Test(
        "A promotional offer has an audience and dates, and may be for once",
        arguments: [
            ([], offer([.current, .lapsed]), .neverSubscribed), ([], offer([.lapsed]), .neverSubscribed),
            ([running], offer([.current]), nil), ([running], offer([.current, .lapsed]), nil),
            ([running], offer([.lapsed]), .notLapsed), ([over], offer([.lapsed]), nil),
            ([over], offer([.current, .lapsed]), nil), ([over], offer([.current]), .notCurrent),
            // Current is who subscribes to any product; lapsed, who subscribes to none of the group.
            ([own("second")], offer([.current]), nil), ([own("second")], offer([.lapsed]), .notLapsed),
            ([own("second"), over], offer([.lapsed]), nil),
            ([own("second", isCurrent: false)], offer([.lapsed]), nil),
            ([own("yearly"), over], offer([.lapsed]), .notLapsed),
            ([another("first", inReceipt: true)], offer([.current, .lapsed]), .neverSubscribed),
            ([running], offer([.current], from: 0, until: 1), nil), ([running], offer([.current], from: 1), .notBegun),
            ([running], offer([.current], until: 0), .ended),
            ([running], offer([.current], from: -2, until: -1), .ended),
            ([], offer([.current], from: 1), .notBegun),
            ([running], offer([.current], once: true), nil),
            ([own("second", isCurrent: false, redeemed: ["o"])], offer([.lapsed], once: true), .redeemed),
            ([own("first", redeemed: ["o"])], offer([.lapsed], once: true), .redeemed),
            ([own("first", redeemed: ["o"])], offer([.current], once: false), nil),
            ([own("first", redeemed: ["other"])], offer([.current], once: true), nil),
        ] as [([Holding], PromotionalOffer, OfferRefusal?)])
    func eligibility(_ holdings: [Holding], _ offer: PromotionalOffer, _ refusal: OfferRefusal?) throws {
        let product = Self.product("first", group: "g", offers: [offer])
        let shop = Self.shop(holdings, Self.catalog.map { $0.id == "first" ? product : $0 })
        #expect(shop.refusal(of: offer, for: product) == refusal)
        let shown = shop.productsOnOffer.first { $0.product.id == "first" }?.offers
        #expect(shown == [.init(id: "o", refusal: refusal)] || holdings.contains(where: \.isOfAnother))
    }
}
