package spicedb
import ("testing";"os";"io/fs";"path";"context";"slices";"errors"
"stonetown/engine";"stonetown/engine/movers";"stonetown/tuplestore/memstore")
func TestTmpE2E(t *testing.T){
 root:=os.DirFS("/tmp/spicecfg")
 total:=0
 fs.WalkDir(root,".",func(p string,d fs.DirEntry,err error)error{
  if d.IsDir()||path.Ext(p)!=".yaml"{return nil}
  w,err:=Read(root,p)
  if err!=nil{return nil}
  store:=memstore.New(memstore.Config{}); defer store.Close()
  e,_:=engine.New(engine.Config{Store:store}); defer e.Close()
  by:=engine.Origin{Actor:"t"}
  ctx:=context.Background()
  for _,ty:=range w.Types{ if _,_,_,err:=e.PutType(ctx,"t",ty,by);err!=nil{t.Error(p,err);return nil}}
  for c:=range slices.Chunk(w.Relations,50){ if _,err:=e.Write(ctx,"t",engine.WriteRequest{Origin:by,Ops:c});err!=nil{t.Error(p,err);return nil}}
  for _,a:=range w.Assertions{
   total++
   if a.Check!=nil{
    r,err:=e.Check(ctx,"t",engine.CheckRequest{Subject:a.Check.Subject,Queries:[]engine.Query{{Resource:a.Check.Resource,Action:a.Check.Action}},Context:a.Context})
    if err!=nil{t.Error(a.At,err);continue}
    got:=movers.Denied
    var ce *engine.ConditionError
    var rn *engine.ResourceNotFoundError
    if errors.As(r.Decisions[0].Err,&ce){got=movers.Undecided}else if errors.As(r.Decisions[0].Err,&rn){}else if r.Decisions[0].Err!=nil{t.Error(a.At,r.Decisions[0].Err)}
    if r.Decisions[0].Allowed{got=movers.Allowed}
    if got!=a.Check.Want{t.Error(path.Base(p),a.At.Line,*a.Check,"got",got)}
   }
   if a.Subjects!=nil{
    s:=a.Subjects
    l,err:=e.ListSubjects(ctx,"t",engine.ListSubjectsRequest{Resource:s.Resource,Action:s.Action,SubjectType:s.Type,SubjectRelation:s.Relation})
    if err!=nil{t.Error(path.Base(p),a.At.Line,s,err);continue}
    var ids []string
    for _,x:=range l.Entries{ if !x.Excluded{ids=append(ids,x.Subject.ID)}}
    want:=slices.Sorted(slices.Values(s.Want)); slices.Sort(ids)
    if !s.Partial&&!slices.Equal(ids,want){t.Error(path.Base(p),a.At.Line,s,"got",ids)}
    if s.Partial{for _,id:=range want{ if !slices.Contains(ids,id){t.Error(path.Base(p),a.At.Line,s,"got",ids)}}}
   }
  }
  return nil})
 t.Log(total)
}
