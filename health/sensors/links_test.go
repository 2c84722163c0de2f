// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumd/quorumd/health"
)

// etcdsAddress is the address of etcd's peer URL in the fixtures.
const etcdsAddress = "192.0.2.1"

// vlanOnBond returns the files of a VLAN on a bond of two ports; the second port has no link.
func vlanOnBond() map[string]string {
	const net, at = "sys/class/net/", "../../../devices/"
	files := map[string]string{
		"sys/devices/pci0/vendor": "0x8086\n", "sys/devices/pci1/vendor": "0x8086\n",
		net + "bond0.7/operstate": "up\n", net + "bond0.7/carrier": "1\n", net + "bond0.7/speed": "10000\n",
		net + "bond0.7/lower_bond0": "-> ../bond0",
		net + "bond0/operstate":     "up\n", net + "bond0/carrier": "1\n", net + "bond0/speed": "10000\n",
		net + "bond0/bonding/ad_aggregator": "1\n",
		net + "bond0/lower_eth0":            "-> ../eth0", net + "bond0/lower_eth1": "-> ../eth1",
		net + "eth0/operstate": "up\n", net + "eth0/carrier": "1\n", net + "eth0/speed": "10000\n",
		net + "eth0/duplex": "full\n", net + "eth0/device": "-> " + at + "pci0",
		net + "eth0/bonding_slave/ad_aggregator_id": "1\n", net + "eth0/bonding_slave/mii_status": "up\n",
		net + "eth1/operstate": "down\n", net + "eth1/carrier": "0\n", net + "eth1/speed": "-1\n",
		net + "eth1/duplex": "unknown\n", net + "eth1/device": "-> " + at + "pci1",
		net + "eth1/bonding_slave/ad_aggregator_id": "2\n", net + "eth1/bonding_slave/mii_status": "down\n",
	}
	for i, name := range []string{"bond0.7", "bond0", "eth0", "eth1"} {
		files[net+name+"/carrier_changes"] = fmt.Sprintf("%d\n", i)
		for k, counter := range []string{
			"rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_missed_errors", "rx_fifo_errors", "tx_dropped",
		} {
			files[net+name+"/statistics/"+counter] = fmt.Sprintf("%d\n", 100*i+k)
		}
	}
	return files
}

func TestEveryInterfaceBelowEtcdsAddressIsFound(t *testing.T) {
	t.Parallel()
	known := func(v float64) health.Figure { return health.Figure{Value: v, Known: true} }
	link := func(i int, l health.Link) health.Link {
		n := float64(100 * i)
		l.Changes, l.Packets, l.Errors, l.Lost = known(float64(i)), known(2*n+1), known(2*n+5), known(3*n+15)
		return l
	}
	want := health.LinkReading{At: time.Hour, Links: []health.Link{
		link(0, health.Link{Name: "bond0.7", On: []string{"bond0"}, Carrier: known(1), Speed: known(10000)}),
		link(1, health.Link{Name: "bond0", On: []string{"eth0", "eth1"}, Carrier: known(1), Speed: known(10000)}),
		link(2, health.Link{Name: "eth0", Carrier: known(1), Speed: known(10000)}),
		link(3, health.Link{
			Name: "eth1", Carrier: known(0), Apart: true, Speed: health.Figure{Absent: "the driver reports no speed"},
		}),
	}}
	if diff := cmp.Diff(want, linked(t, vlanOnBond()).Links(t.Context(), etcdsAddress)); diff != "" {
		t.Error(diff)
	}
}

func TestAnIPv6AddressIsFoundAndInvalidOnesAreSkipped(t *testing.T) {
	t.Parallel()
	files := vlanOnBond()
	files["proc/net/if_inet6"] = "zz010db8000000000000000000000001 04 40 00 82     eth0\n2001\n" +
		"20010db8000000000000000000000001 04 40 00 82     bond0\n"
	got := linked(t, files).Links(t.Context(), "2001:db8::1")
	if len(got.Links) != 3 || got.Links[0].Name != "bond0" {
		t.Errorf("read %+v", got)
	}
}

func TestPortsOfABridgeToVirtualMachinesAreNotEtcds(t *testing.T) {
	t.Parallel()
	files := vlanOnBond()
	for i := range 3 * mostLinks {
		name := fmt.Sprintf("a-tap%d", i)
		files["sys/class/net/"+name+"/operstate"] = "down\n"
		files["sys/class/net/bond0.7/lower_"+name] = "-> ../" + name
	}
	var names []string
	for _, l := range linked(t, files).Links(t.Context(), etcdsAddress).Links {
		names = append(names, l.Name)
	}
	if diff := cmp.Diff([]string{"bond0.7", "bond0", "eth0", "eth1"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownInterfaceHasAReason(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		files     map[string]string
		host, why string
	}{
		"an unassigned address":     {vlanOnBond(), "192.0.2.9", string(noHolder)},
		"an unknown name":           {vlanOnBond(), "a..b", string(noAddress)},
		"an interface that is gone": {nil, etcdsAddress, "cannot read"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got := linked(t, c.files).Links(t.Context(), c.host)
			if len(got.Links) > 0 || !strings.Contains(got.Absent, c.why) {
				t.Errorf("read %+v, want why: %s", got, c.why)
			}
		})
	}
}

func TestTheLoopbackOfThisMachineHasItsAddress(t *testing.T) {
	t.Parallel()
	r := New()
	if _, err := r.holder([]netip.Addr{netip.MustParseAddr("192.0.2.77")}); !errors.Is(err, noHolder) {
		t.Errorf("an unassigned address: %v", err)
	}
	got := r.Links(t.Context(), "127.0.0.1")
	if len(got.Links) != 1 || got.Links[0].Name != "lo" || got.Links[0].Carrier.Value != 1 {
		t.Errorf("read %+v", got)
	}
	t.Logf("%+v", got)
}

// FuzzLinks replaces the text of one file.
func FuzzLinks(f *testing.F) {
	for name, text := range vlanOnBond() {
		if strings.Contains(name, "/eth1/") && !strings.HasPrefix(text, "-> ") {
			f.Add(name, text)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		files := maps.Clone(vlanOnBond())
		if was, known := files[name]; !known || strings.HasPrefix(was, "-> ") || strings.HasPrefix(text, "-> ") {
			return
		}
		files[name] = text
		got := linked(t, files).Links(t.Context(), etcdsAddress)
		if len(got.Links) != 4 || got.Absent != "" {
			t.Fatalf("read %+v", got)
		}
		for _, l := range got.Links {
			for _, f := range []health.Figure{l.Carrier, l.Speed, l.Changes, l.Packets, l.Errors, l.Lost} {
				if f.Known == (f.Absent != "") || !(f.Value >= 0) {
					t.Errorf("read %+v of %s", f, l.Name)
				}
			}
		}
	})
}
