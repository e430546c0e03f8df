package spicedb
import ("testing";"os";"io/fs";"path";"strings")
func TestTmpCorpus(t *testing.T){
 root:=os.DirFS("/tmp/spicecfg")
 fs.WalkDir(root,".",func(p string,d fs.DirEntry,err error)error{
  if d.IsDir(){return nil}
  if e:=path.Ext(p); e!=".yaml"&&e!=".zed"{return nil}
  w,err:=Read(root,p)
  if err!=nil{t.Log("ERR ",err);return nil}
  u:=0
  for _,f:=range w.Report{ if f.Kind=="unsupported"&&!strings.Contains(f.Message,"expected relations are"){t.Log(path.Base(p),f)};_=u}
  t.Log("ok ",path.Base(p),len(w.Types),len(w.Relations),len(w.Assertions),len(w.Report))
  return nil})
}
